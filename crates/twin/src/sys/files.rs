//! Open files.
//!
//! Source: `fget()`, `fput()`, fs/file.c; `generic_perform_write()`, `generic_file_buffered_read()`, mm/filemap.c (4.20).
//! Rule: a call holds the open file that it works on, so that it outlives a close by another thread.
//! Abstracted: the number of a descriptor that was closed in the middle of a call is given out again after that call.

use mm::Frame;
use mm::pagecache::{ReadStop, Readahead, WriteStop};
use mm::vfs::{Handle, Need};
use sys::{Fd, FileAdvice, Result, SysError};
use units::{Bytes, FileId, Gfp, PAGE_SIZE, Pfn};

use super::SysTwin;
use super::process::OpenFile;

/// `read_ahead_kb`: 128 KiB.
const READAHEAD_PAGES: u32 = 32;
/// `s_maxbytes` here: pages of a file are numbered by 32 bits.
const FILE_PAGES_MAX: u64 = u32::MAX as u64;

/// The pages that a part of a file lies in: first, and one past the last.
fn pages_of(offset: Bytes, length: Bytes) -> Result<(u64, u64)> {
    let end = offset.0.checked_add(length.0).ok_or(SysError::Invalid)?;
    let first = offset.0 / PAGE_SIZE;
    Ok((first, if length.0 == 0 { first } else { Bytes(end).pages_up().0 }))
}

impl SysTwin {
    /// Gives an open file the lowest free descriptor.
    pub(super) fn install(&self, handle: Handle) -> Fd {
        let open = OpenFile { handle, readahead: Readahead::new(READAHEAD_PAGES), users: 0, closed: false };
        self.task.ctx.with(|world, _| Fd(world.processes.of_mut(self.process).install(open)))
    }

    fn with_open<R>(&self, fd: Fd, call: impl FnOnce(&mut OpenFile) -> R) -> Result<R> {
        self.task
            .ctx
            .with(|world, _| world.processes.of_mut(self.process).file_mut(fd.0).map(call).ok_or(SysError::BadFd))
    }

    /// Holds an open file for a call.
    fn fget(&self, fd: Fd) -> Result<FileId> {
        self.with_open(fd, |open| {
            if open.closed {
                return Err(SysError::BadFd);
            }
            open.users += 1;
            Ok(open.handle.file)
        })?
    }

    /// The call is over.
    fn fput(&self, fd: Fd) {
        let last = self.with_open(fd, |open| {
            open.users -= 1;
            open.closed && open.users == 0
        });
        if last == Ok(true) {
            self.uninstall(fd);
        }
    }

    fn uninstall(&self, fd: Fd) {
        let open = self.task.ctx.with(|world, _| world.processes.of_mut(self.process).uninstall(fd.0));
        self.close_open(open.expect("an open file is in the table"));
    }

    /// Lets go of an open file that is in no table any more.
    pub(super) fn close_open(&self, open: OpenFile) {
        self.task.mm(|mm, env| mm.vfs_close(env, open.handle));
    }

    pub(super) async fn close_file(&self, fd: Fd) -> Result<()> {
        let idle = self.with_open(fd, |open| {
            let was_open = !std::mem::replace(&mut open.closed, true);
            was_open.then_some(open.users == 0).ok_or(SysError::BadFd)
        })??;
        if idle {
            self.uninstall(fd);
        }
        Ok(())
    }

    pub(super) async fn write_file(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<()> {
        let (first, end) = pages_of(offset, length)?;
        if end > FILE_PAGES_MAX {
            return Err(SysError::FileTooLarge);
        }
        let file = self.fget(fd)?;
        let result = self.write_pages(file, first as u32, end as u32).await;
        self.fput(fd);
        result
    }

    async fn write_pages(&self, file: FileId, first: u32, end: u32) -> Result<()> {
        for index in first..end {
            if self.task.fatal_signal_pending() {
                return Err(SysError::Killed);
            }
            let mut hand = None;
            let written = self.write_one(file, index, &mut hand).await;
            self.free_hand(hand);
            if written? {
                self.task.balance_dirty_pages(file).await;
            }
            self.task.ctx.preempt_point().await;
        }
        Ok(())
    }

    /// Writes one page; says whether it was clean before. `hand` is a page from the slow path that is left over.
    async fn write_one(&self, file: FileId, index: u32, hand: &mut Option<Pfn>) -> Result<bool> {
        loop {
            match self.task.mm(|mm, env| mm.write_page(env, file, index, hand)) {
                WriteStop::Done { dirtied } => return Ok(dirtied),
                WriteStop::Need(Need::Page(request)) => {
                    *hand = Some(self.task.alloc_pages_slowpath(request).await.ok_or(SysError::NoMemory)?);
                }
                WriteStop::Need(need) => self.satisfy(need).await?,
                WriteStop::Wait(pfn) => self.task.wait_on_page_bit(pfn, Frame::LOCKED).await,
            }
        }
    }

    /// Gives back a page that was allocated for an operation that does not need it after all.
    fn free_hand(&self, hand: Option<Pfn>) {
        if let Some(pfn) = hand {
            self.task.mm(|mm, env| mm.free_pages(env, pfn, units::Order(0)));
        }
    }

    pub(super) async fn read_file(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<Bytes> {
        let (first, wanted) = pages_of(offset, length)?;
        let file = self.fget(fd)?;
        let size = self.task.mm(|mm, _| mm.inode_size_pages(file));
        let end = wanted.min(u64::from(size)) as u32;
        let result = if first < u64::from(end) { self.read_pages(fd, file, first as u32, end).await } else { Ok(()) };
        self.fput(fd);
        result.map(|()| Bytes(u64::from(end).saturating_sub(first) * PAGE_SIZE))
    }

    async fn read_pages(&self, fd: Fd, file: FileId, first: u32, end: u32) -> Result<()> {
        for index in first..end {
            let mut readahead = self.with_open(fd, |open| open.readahead)?;
            let mut hand = None;
            let read = self.read_one(file, index, end - index, &mut readahead, &mut hand).await;
            if read.is_err() {
                self.task.mm(|mm, env| mm.abandon_read(env, file, &mut readahead));
                self.free_hand(hand);
            }
            self.with_open(fd, |open| open.readahead = readahead)?;
            read?;
            self.task.ctx.preempt_point().await;
        }
        Ok(())
    }

    async fn read_one(
        &self,
        file: FileId,
        index: u32,
        wanted: u32,
        readahead: &mut Readahead,
        hand: &mut Option<Pfn>,
    ) -> Result<()> {
        while !self.task.fatal_signal_pending() {
            // The file may have become shorter while this slept.
            if index >= self.task.mm(|mm, _| mm.inode_size_pages(file)) {
                self.task.mm(|mm, env| mm.abandon_read(env, file, readahead));
                self.free_hand(hand.take());
                return Ok(());
            }
            match self.task.mm(|mm, env| mm.read_page(env, file, index, wanted, readahead, hand)) {
                ReadStop::Done => return Ok(()),
                ReadStop::Need(Need::Page(request)) => {
                    *hand = self.task.alloc_pages_slowpath(request).await;
                    // Readahead may fail; the page itself may not.
                    if hand.is_none() && !request.gfp.contains(Gfp::NORETRY) {
                        return Err(SysError::NoMemory);
                    }
                }
                ReadStop::Need(need) => self.satisfy(need).await?,
                ReadStop::Wait(pfn) => self.task.wait_on_page_bit(pfn, Frame::LOCKED).await,
            }
        }
        Err(SysError::Killed)
    }

    pub(super) async fn advise_file(&self, fd: Fd, advice: FileAdvice) -> Result<()> {
        let file = self.fget(fd)?;
        match advice {
            FileAdvice::Normal => self.with_open(fd, |open| open.readahead.advise_normal())?,
            FileAdvice::Sequential => self.with_open(fd, |open| open.readahead.advise_sequential())?,
            FileAdvice::Random => self.with_open(fd, |open| open.readahead.advise_random())?,
            FileAdvice::DontNeed => {
                self.task.mm(|mm, env| mm.invalidate_clean_pages(env, file));
            }
        }
        self.fput(fd);
        Ok(())
    }

    pub(super) async fn truncate_file(&self, fd: Fd, length: Bytes) -> Result<()> {
        let pages = length.pages_up().0;
        if pages > FILE_PAGES_MAX {
            return Err(SysError::FileTooLarge);
        }
        let file = self.fget(fd)?;
        self.task.mm(|mm, env| {
            mm.truncate_pages(env, file, pages as u32);
            mm.set_inode_size_pages(file, pages as u32);
        });
        self.fput(fd);
        Ok(())
    }

    pub(super) async fn sync_file(&self, fd: Fd) -> Result<()> {
        let file = self.fget(fd)?;
        self.task.sync_file(file).await;
        self.fput(fd);
        Ok(())
    }

    pub(super) async fn sync_all(&self) -> Result<()> {
        self.task.sync_all().await;
        Ok(())
    }
}
