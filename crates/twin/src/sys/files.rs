//! Files.

use mm::Frame;
use mm::pagecache::{ReadStop, Readahead, WriteStop};
use mm::vfs::{Handle, Need};
use mm::{Env, Mm};
use sys::{Dir, Fd, FileAdvice, FileName, OpenMode, Result, SysError};
use units::{Bytes, FileId, Gfp, PAGE_SIZE, Pages};

use super::SysTwin;
use super::process::{Directory, OpenFile};

/// `read_ahead_kb`: 128 KiB.
const READAHEAD_PAGES: u32 = 32;

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
            world.processes.directories.push(Directory { id, files: Vec::new() });
            Dir(world.processes.directories.len() as u32 - 1)
        }))
    }

    fn lookup(&self, name: FileName) -> Option<FileId> {
        let number = name.number as usize;
        self.task
            .ctx
            .with(|world, _| world.processes.directories[name.dir.0 as usize].files.get(number).copied().flatten())
    }

    fn set_name(&self, name: FileName, file: Option<FileId>) {
        let number = name.number as usize;
        self.task.ctx.with(|world, _| {
            let files = &mut world.processes.directories[name.dir.0 as usize].files;
            if number >= files.len() {
                files.resize(number + 1, None);
            }
            files[number] = file;
        });
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
                self.set_end(handle.file, Bytes(0));
                handle
            }
        };
        Ok(self.install(handle))
    }

    /// Gives an open file the lowest number that was freed, or a new one.
    fn install(&self, handle: Handle) -> Fd {
        let open = OpenFile { handle, readahead: Readahead::new(READAHEAD_PAGES) };
        self.task.ctx.with(|world, _| {
            let process = &mut world.processes.list[self.process as usize];
            match process.free_fds.pop() {
                Some(fd) => {
                    process.files[fd as usize] = Some(open);
                    Fd(fd)
                }
                None => {
                    process.files.push(Some(open));
                    Fd(process.files.len() as u32 - 1)
                }
            }
        })
    }

    fn with_open<R>(&self, fd: Fd, call: impl FnOnce(&mut OpenFile) -> R) -> Result<R> {
        self.task.ctx.with(|world, _| {
            let files = &mut world.processes.list[self.process as usize].files;
            files.get_mut(fd.0 as usize).and_then(Option::as_mut).map(call).ok_or(SysError::BadFd)
        })
    }

    fn file(&self, fd: Fd) -> Result<FileId> {
        self.with_open(fd, |open| open.handle.file)
    }

    /// Size of a file in bytes.
    fn size(&self, file: FileId) -> Bytes {
        let pages = self.task.mm(|mm, _| mm.inode_size_pages(file));
        let last = self.task.ctx.with(|world, _| world.processes.last_bytes.get(file.index()).copied().unwrap_or(0));
        let whole = Pages(u64::from(pages)).bytes();
        if last == 0 || pages == 0 { whole } else { Bytes(whole.0 - PAGE_SIZE + u64::from(last)) }
    }

    /// Notes where in its last page a file of this size ends.
    fn set_end(&self, file: FileId, size: Bytes) {
        let last = (size.0 % PAGE_SIZE) as u16;
        self.task.ctx.with(|world, _| {
            let ends = &mut world.processes.last_bytes;
            match ends.get_mut(file.index()) {
                Some(end) => *end = last,
                None if last == 0 => {}
                None => {
                    ends.resize(file.index() + 1, 0);
                    ends[file.index()] = last;
                }
            }
        });
    }

    pub(super) async fn close_file(&self, fd: Fd) -> Result<()> {
        self.enter().await?;
        let handle = self.with_open(fd, |open| open.handle)?;
        self.task.ctx.with(|world, _| {
            let process = &mut world.processes.list[self.process as usize];
            process.files[fd.0 as usize] = None;
            process.free_fds.push(fd.0);
        });
        self.task.mm(|mm, env| mm.vfs_close(env, handle));
        Ok(())
    }

    pub(super) async fn write_file(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<()> {
        self.enter().await?;
        let file = self.file(fd)?;
        let first = (offset.0 / PAGE_SIZE) as u32;
        let written = Bytes(offset.0 + length.0);
        let end = written.pages_up().0 as u32;
        let before = self.size(file);
        for index in first..end {
            if self.write_one(file, index).await? {
                self.task.balance_dirty_pages(file).await;
            }
            self.task.ctx.preempt_point().await;
        }
        // Unless another writer has extended the file further meanwhile.
        if written > before && self.task.mm(|mm, _| mm.inode_size_pages(file)) == end {
            self.set_end(file, written);
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
        let read = Bytes(length.0.min(self.size(file).0.saturating_sub(offset.0)));
        if read == Bytes(0) {
            return Ok(read);
        }
        let end = Bytes(offset.0 + read.0).pages_up().0 as u32;
        for index in first..end {
            self.read_one(fd, file, index, end - index).await?;
            self.task.ctx.preempt_point().await;
        }
        Ok(read)
    }

    async fn read_one(&self, fd: Fd, file: FileId, index: u32, wanted: u32) -> Result<()> {
        let mut readahead = self.with_open(fd, |open| open.readahead)?;
        let mut hand = None;
        loop {
            match self.task.mm(|mm, env| mm.read_page(env, file, index, wanted, &mut readahead, &mut hand)) {
                ReadStop::Done => return self.with_open(fd, |open| open.readahead = readahead),
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
            FileAdvice::Normal => self.with_open(fd, |open| open.readahead.advise_normal()),
            FileAdvice::Sequential => self.with_open(fd, |open| open.readahead.advise_sequential()),
            FileAdvice::Random => self.with_open(fd, |open| open.readahead.advise_random()),
            FileAdvice::DontNeed => {
                self.task.mm(|mm, env| mm.invalidate_clean_pages(env, file));
                Ok(())
            }
        }
    }

    pub(super) async fn truncate_file(&self, fd: Fd, length: Bytes) -> Result<()> {
        self.enter().await?;
        let file = self.file(fd)?;
        let pages = length.pages_up().0 as u32;
        self.task.mm(|mm, env| {
            mm.truncate_pages(env, file, pages);
            mm.set_inode_size_pages(file, pages);
        });
        self.set_end(file, length);
        Ok(())
    }

    pub(super) async fn stat_file(&self, name: FileName) -> Result<Bytes> {
        self.enter().await?;
        let file = self.lookup(name).ok_or(SysError::NoEntry)?;
        self.until_satisfied(|mm, env| mm.vfs_stat(env, file)).await?;
        Ok(self.size(file))
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
