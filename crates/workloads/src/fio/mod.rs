//! fio's synchronous engine over small files, as far as the studies use it.
//!
//! Source: fio 2.99, which mmtests of 2018 ran: `setup_files()`, filesetup.c; `td_io_open_file()`, ioengines.c; `do_io()`,
//! `run_threads()`, backend.c; io_u.c; HOWTO. One process asks for the size of every file of every job before it
//! starts the jobs, each a process of its own. Without `openfiles` every file may be open at once, and is from its first
//! use on: a reader that is limited by time keeps every file open that it has ever read.
//! Abstracted: fio's own CPU time is one constant an I/O; its tausworthe generator is replaced by ChaCha8.
//! Omitted: fio's own memory, about 350 bytes a file in shared memory; a layout of files that are not created on open.

mod job;
mod map;
mod pick;

pub(crate) use job::{FileService, Fio, FioJob, Pattern, Share};
