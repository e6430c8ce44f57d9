//! Files.

use mm::Frame;
use mm::pagecache::{ReadStop, WriteStop};
use mm::vfs::Need;
use mm::{Env, Mm};
use sys::{Dir, Fd, FileAdvice, FileName, OpenMode, Result, SysError};
use units::{Bytes, FileId, Gfp, PAGE_SIZE};

use super::SysTwin;
use super::descriptors::Descriptors;
use super::process::Directory;

impl SysTwin {
    /// Repeats an operation until nothing is missing.
    async fn until_satisfied<R>(
        &self,
        mut call: impl FnMut(&mut Mm, &Env) -> std::result::Result<R, Need>,
    ) -> Result<R> {
        loop {
            match self.task.mm(&mut call) {
                Ok(result) => return Ok(result),
                Err(need) => self.satisfy(need).await?,
            }
        }
    }

    pub(super) async fn make_directory(&self, _name: &str) -> Result<Dir> {
        self.enter().await?;
        let fs = self.task.ctx.with(|world, _| world.processes.fs).ok_or(SysError::NoEntry)?;
        let root = self.task.mm(|mm, _| mm.vfs_root(fs));
        let id = self.until_satisfied(|mm, env| mm.vfs_mkdir(env, root)).await?;
        Ok(self.task.ctx.with(|world, _| {
            world.processes.directories.push(Directory::new(id));
            Dir(world.processes.directories.len() as u32 - 1)
        }))
    }

    fn lookup(&self, name: FileName) -> Option<FileId> {
        self.task.ctx.with(|world, _| world.processes.directories[name.dir.0 as usize].file(name.number))
    }

    fn set_name(&self, name: FileName, file: Option<FileId>) {
        self.task.ctx.with(|world, _| world.processes.directories[name.dir.0 as usize].set_file(name.number, file));
    }

    pub(super) async fn open_file(&self, name: FileName, mode: OpenMode) -> Result<Fd> {
        self.enter().await?;
        let handle = match self.lookup(name) {
            Some(file) => self.until_satisfied(|mm, env| mm.vfs_open(env, file)).await?,
            None if mode == OpenMode::Existing => return Err(SysError::NoEntry),
            None => {
                let dir = self.task.ctx.with(|world, _| world.processes.directories[name.dir.0 as usize].id);
                let handle = self.until_satisfied(|mm, env| mm.vfs_create(env, dir)).await?;
                self.set_name(name, Some(handle.file));
                handle
            }
        };
        Ok(self.descriptors(|files| files.install(handle)))
    }

    pub(super) fn descriptors<R>(&self, call: impl FnOnce(&mut Descriptors) -> R) -> R {
        self.task.ctx.with(|world, _| call(&mut world.processes.list[self.process as usize].files))
    }

    fn file(&self, fd: Fd) -> Result<FileId> {
        self.descriptors(|files| files.file(fd)).ok_or(SysError::BadFd)
    }

    pub(super) async fn close_file(&self, fd: Fd) -> Result<()> {
        self.enter().await?;
        let handle = self.descriptors(|files| files.remove(fd)).ok_or(SysError::BadFd)?;
        self.task.mm(|mm, env| mm.vfs_close(env, handle));
        Ok(())
    }

    pub(super) async fn write_file(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<()> {
        self.enter().await?;
        let file = self.file(fd)?;
        let first = (offset.0 / PAGE_SIZE) as u32;
        let end = Bytes(offset.0 + length.0).pages_up().0 as u32;
        self.until_satisfied(|mm, env| mm.vfs_update_time(env, file)).await?;
        for index in first..end {
            if self.write_one(file, index).await? {
                self.task.balance_dirty_pages(file).await;
            }
            self.task.ctx.preempt_point().await;
        }
        Ok(())
    }

    /// Writes one page; says whether it was clean before.
    async fn write_one(&self, file: FileId, index: u32) -> Result<bool> {
        let mut hand = None;
        loop {
            match self.task.mm(|mm, env| mm.write_page(env, file, index, &mut hand)) {
                WriteStop::Done { dirtied } => return Ok(dirtied),
                WriteStop::Need(Need::Page(request)) => {
                    hand = Some(self.task.alloc_pages_slowpath(request).await.ok_or(SysError::NoMemory)?);
                }
                WriteStop::Need(need) => self.satisfy(need).await?,
                WriteStop::Wait(pfn) => self.task.wait_on_page_bit(pfn, Frame::LOCKED).await,
            }
        }
    }

    pub(super) async fn read_file(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<Bytes> {
        self.enter().await?;
        let file = self.file(fd)?;
        let first = (offset.0 / PAGE_SIZE) as u32;
        let wanted = Bytes(offset.0 + length.0).pages_up().0 as u32;
        let end = wanted.min(self.task.mm(|mm, _| mm.inode_size_pages(file)));
        for index in first..end {
            self.read_one(fd, file, index, end - index).await?;
            self.task.ctx.preempt_point().await;
        }
        self.until_satisfied(|mm, env| mm.vfs_touch_atime(env, file)).await?;
        Ok(Bytes(u64::from(end.saturating_sub(first)) * PAGE_SIZE))
    }

    async fn read_one(&self, fd: Fd, file: FileId, index: u32, wanted: u32) -> Result<()> {
        let mut readahead = self.descriptors(|files| files.readahead(fd)).ok_or(SysError::BadFd)?;
        let mut hand = None;
        loop {
            match self.task.mm(|mm, env| mm.read_page(env, file, index, wanted, &mut readahead, &mut hand)) {
                ReadStop::Done => {
                    self.descriptors(|files| files.keep_readahead(fd, readahead));
                    return Ok(());
                }
                ReadStop::Need(Need::Page(request)) => {
                    hand = self.task.alloc_pages_slowpath(request).await;
                    // Readahead may fail; the page itself may not.
                    if hand.is_none() && !request.gfp.contains(Gfp::NORETRY) {
                        return Err(SysError::NoMemory);
                    }
                }
                ReadStop::Need(need) => self.satisfy(need).await?,
                ReadStop::Wait(pfn) => self.task.wait_on_page_bit(pfn, Frame::LOCKED).await,
            }
        }
    }

    pub(super) async fn advise_file(&self, fd: Fd, advice: FileAdvice) -> Result<()> {
        self.enter().await?;
        let file = self.file(fd)?;
        match advice {
            FileAdvice::Normal | FileAdvice::Sequential | FileAdvice::Random => {
                self.descriptors(|files| files.advise(fd, advice));
            }
            FileAdvice::DontNeed => {
                self.task.mm(|mm, env| mm.invalidate_clean_pages(env, file));
            }
        }
        Ok(())
    }

    pub(super) async fn truncate_file(&self, fd: Fd, length: Bytes) -> Result<()> {
        self.enter().await?;
        let file = self.file(fd)?;
        let pages = length.pages_up().0 as u32;
        self.task.mm(|mm, env| {
            mm.truncate_pages(env, file, pages);
            mm.set_inode_size_pages(file, pages);
        });
        Ok(())
    }

    pub(super) async fn unlink_file(&self, name: FileName) -> Result<()> {
        self.enter().await?;
        let file = self.lookup(name).ok_or(SysError::NoEntry)?;
        self.until_satisfied(|mm, env| mm.vfs_unlink(env, file)).await?;
        self.set_name(name, None);
        Ok(())
    }

    pub(super) async fn sync_file(&self, fd: Fd) -> Result<()> {
        self.enter().await?;
        let file = self.file(fd)?;
        self.task.sync_file(file).await;
        Ok(())
    }

    pub(super) async fn sync_all(&self) -> Result<()> {
        self.enter().await?;
        self.task.sync_all().await;
        Ok(())
    }
}
