//! Files and directories.

use std::fs::DirBuilder;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, Mode, OFlags};
use sys::{Dir, Fd, FileAdvice, FileName, OpenMode, Result, SysError};
use units::Bytes;

use crate::SysLinux;
use crate::errno::sys_error;
use crate::process::{SyncScope, lock};

/// What writes write.
const FILL: u8 = 0x5a;

impl SysLinux {
    pub(crate) fn make_directory(&self, name: &str) -> Result<Dir> {
        let below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !below {
            return Err(SysError::Invalid);
        }
        let path = self.process.config.mount.join(name);
        let made = DirBuilder::new().recursive(true).create(&path);
        made.map_err(|error| rustix::io::Errno::from_io_error(&error).map_or(SysError::Io, sys_error))?;
        self.process.shared.new_dir(name).map(Dir).ok_or(SysError::Invalid)
    }

    fn path_of_dir(&self, dir: Dir) -> Result<PathBuf> {
        let name = self.process.shared.dir(dir.0).ok_or(SysError::NoEntry)?;
        Ok(self.process.config.mount.join(name))
    }

    /// Where a file stands. Directories are not kept open: that would pin their inodes in memory for the whole run.
    fn path_of(&self, name: FileName) -> Result<PathBuf> {
        let mut path = self.path_of_dir(name.dir)?;
        path.push(format!("workfile.{}", name.number));
        Ok(path)
    }

    pub(crate) fn open_file(&self, name: FileName, mode: OpenMode) -> Result<Fd> {
        let path = self.path_of(name)?;
        let create = if mode == OpenMode::Create { OFlags::CREATE } else { OFlags::empty() };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | create;
        let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)).map_err(sys_error)?;
        let mut files = lock(&self.process.files);
        Ok(Fd(match files.free.pop() {
            Some(number) => {
                files.table[number as usize] = Some(Arc::new(file));
                number
            }
            None => {
                files.table.push(Some(Arc::new(file)));
                files.table.len() as u32 - 1
            }
        }))
    }

    pub(crate) fn file(&self, fd: Fd) -> Result<Arc<OwnedFd>> {
        lock(&self.process.files).table.get(fd.0 as usize).cloned().flatten().ok_or(SysError::BadFd)
    }

    pub(crate) fn close_file(&self, fd: Fd) -> Result<()> {
        let mut files = lock(&self.process.files);
        let file = files.table.get_mut(fd.0 as usize).and_then(Option::take).ok_or(SysError::BadFd)?;
        files.free.push(fd.0);
        drop(files);
        drop(file);
        Ok(())
    }

    pub(crate) fn read_file(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<Bytes> {
        let file = self.file(fd)?;
        let mut buffer = self.buffer(length)?;
        let mut done = 0;
        while done < length.0 {
            let part = &mut buffer[done as usize..length.0 as usize];
            match rustix::io::retry_on_intr(|| rustix::io::pread(&file, &mut *part, offset.0 + done)) {
                Ok(0) => break,
                Ok(read) => done += read as u64,
                Err(error) => return Err(sys_error(error)),
            }
        }
        Ok(Bytes(done))
    }

    pub(crate) fn write_file(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<()> {
        let file = self.file(fd)?;
        let buffer = self.buffer(length)?;
        write_all(offset, length, |done, at| rustix::io::pwrite(&file, &buffer[done as usize..length.0 as usize], at))
    }

    /// This thread's buffer for I/O, of at least `length` bytes.
    pub(crate) fn buffer(&self, length: Bytes) -> Result<std::cell::RefMut<'_, Vec<u8>>> {
        let mut buffer = self.buffer.borrow_mut();
        let length = length.0 as usize;
        if buffer.len() < length {
            let more = length - buffer.len();
            buffer.try_reserve_exact(more).map_err(|_| SysError::NoMemory)?;
            buffer.resize(length, FILL);
        }
        Ok(buffer)
    }

    pub(crate) fn advise_file(&self, fd: Fd, advice: FileAdvice) -> Result<()> {
        let advice = match advice {
            FileAdvice::Normal => Advice::Normal,
            FileAdvice::Sequential => Advice::Sequential,
            FileAdvice::Random => Advice::Random,
            FileAdvice::DontNeed => Advice::DontNeed,
        };
        rustix::fs::fadvise(self.file(fd)?, 0, None, advice).map_err(sys_error)
    }

    pub(crate) fn sync_file(&self, fd: Fd) -> Result<()> {
        rustix::fs::fsync(self.file(fd)?).map_err(sys_error)
    }

    pub(crate) fn truncate_file(&self, fd: Fd, length: Bytes) -> Result<()> {
        rustix::fs::ftruncate(self.file(fd)?, length.0).map_err(sys_error)
    }

    pub(crate) fn stat_file(&self, name: FileName) -> Result<Bytes> {
        let stat = rustix::fs::stat(self.path_of(name)?).map_err(sys_error)?;
        Ok(Bytes(stat.st_size as u64))
    }

    pub(crate) fn unlink_file(&self, name: FileName) -> Result<()> {
        rustix::fs::unlink(self.path_of(name)?).map_err(sys_error)
    }

    pub(crate) fn remove_directory(&self, dir: Dir) -> Result<()> {
        rustix::fs::rmdir(self.path_of_dir(dir)?).map_err(sys_error)
    }

    pub(crate) fn sync_all(&self) -> Result<()> {
        match self.process.config.sync {
            SyncScope::Machine => {
                rustix::fs::sync();
                Ok(())
            }
            SyncScope::TestMount => {
                let mount = std::fs::File::open(&self.process.config.mount).map_err(|_| SysError::Io)?;
                rustix::fs::syncfs(mount).map_err(sys_error)
            }
        }
    }
}

/// Calls `pwrite`, with what is done and the offset in the file where it goes on, until so much is written.
pub(crate) fn write_all(
    offset: Bytes,
    length: Bytes,
    pwrite: impl Fn(u64, u64) -> rustix::io::Result<usize>,
) -> Result<()> {
    let mut done = 0;
    while done < length.0 {
        done += rustix::io::retry_on_intr(|| pwrite(done, offset.0 + done)).map_err(sys_error)? as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_a_write_leaves_is_written_by_the_next_one() {
        let calls = RefCell::new(Vec::new());
        let answers = RefCell::new(vec![Ok(3), Err(Errno::INTR), Ok(5), Err(Errno::NOSPC)]);
        let pwrite = |done, at| {
            calls.borrow_mut().push((done, at));
            answers.borrow_mut().pop().expect("an answer for each call")
        };
        assert_eq!(write_all(Bytes(100), Bytes(8), pwrite), Err(SysError::NoSpace));
        assert_eq!(write_all(Bytes(100), Bytes(8), pwrite), Ok(()));
        // The first fails; then five bytes, an interrupted call, which is made again, and the three that are left.
        assert_eq!(*calls.borrow(), [(0, 100), (0, 100), (5, 105), (5, 105)]);
    }
}
