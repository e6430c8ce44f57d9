//! fio's synchronous engine over small files, as far as the studies use it.
//!
//! Source: fio 2.99/3.33, `filesetup.c`, `io_u.c` (`get_next_file_rr`, `get_next_file_rand`, `set_io_u_file`,
//! `get_next_rand_block`, `io_issue_bytes_exceeded`), HOWTO. Without `openfiles` a file is opened when it is first served
//! and stays open until the job ends. `file_service_type` defaults to round robin with one I/O a file, so that a
//! sequential writer touches block 0 of all files, then block 1 of all. A time-based job starts a file whose blocks
//! were all served over; any other job ends once it has issued the size of all its files.
//! Abstracted: fio's own CPU time is one constant an I/O; its tausworthe generator is replaced by ChaCha8.
//! Omitted: `stat` of every file before the first I/O.

mod job;
mod pick;

pub(crate) use job::{FileService, FioJob, Pattern, Share};
