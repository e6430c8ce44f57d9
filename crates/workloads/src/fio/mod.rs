//! fio's synchronous engine over small files, as far as the studies use it.
//!
//! Source: fio 2.99/3.33, `filesetup.c`, `io_u.c` (`get_next_file_rr`, `get_next_file_rand`, `set_io_u_file`),
//! HOWTO. Without `openfiles` every file of a job stays open until its I/O is complete. `file_service_type`
//! defaults to round robin with one I/O a file, so that a sequential writer touches block 0 of all files, then
//! block 1 of all. A file whose blocks were all served is closed.
//! Abstracted: fio's own CPU time is one constant an I/O; its tausworthe generator is replaced by ChaCha8.

mod job;
mod pick;

pub(crate) use job::{FileService, FioJob, Pattern, Share};
