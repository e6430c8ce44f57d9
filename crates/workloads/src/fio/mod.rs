//! fio: its engines that use the page cache, for the studies and for job files.
//!
//! Source: fio 2.99, which mmtests of 2018 ran, and 3.33: `setup_files()`, `extend_file()`, filesetup.c; `td_io_open_file()`,
//! ioengines.c; `do_io()`, `run_threads()`, backend.c; io_u.c; HOWTO. One process asks for the size of every file of every
//! job, and lays out those that are read, before it starts the jobs, each a process of its own. Every file may be open at
//! once, and is from its first use on: a reader that is limited by time keeps every file open that it has ever read.
//! Abstracted: fio's own CPU time is one constant an I/O; its tausworthe generator is replaced by ChaCha8; a file that is
//! not laid out is made empty and not preallocated; `MADV_SEQUENTIAL` of a mapping does nothing.
//! Omitted: fio's own memory, about 350 bytes a file in shared memory; direct I/O and what [`FioFile`] refuses.

mod file;
mod ini;
mod job;
mod map;
mod options;
mod pick;
mod running;
mod skew;

pub use file::FioFile;
pub(crate) use file::SPEC;
pub use ini::JobFileError;
pub(crate) use job::{FileService, Fio, FioJob, Share};
pub(crate) use pick::Pattern;
