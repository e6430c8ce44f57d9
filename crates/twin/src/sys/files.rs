//! Reading and writing files.
//!
//! Source: `generic_perform_write()`, `generic_file_buffered_read()`, mm/filemap.c; `file_update_time()`,
//! `touch_atime()`, fs/inode.c (4.20).

use mm::Frame;
use mm::pagecache::{PageWrite, ReadStop, Readahead, WriteStop};
use mm::vfs::{Handle, Need};
use smallvec::{SmallVec, smallvec};
use sys::{Access, Fd, FileAdvice, Mapping, Result, SysError};
use units::{Bytes, FileId, PAGE_SIZE, Pages, Pfn};

use super::SysTwin;
use super::descriptors::Descriptors;

/// `s_maxbytes` here: pages of a file are numbered by 32 bits.
const FILE_PAGES_MAX: u64 = u32::MAX as u64;

/// What is written: so much of a mapping, from its start, to this offset of the file.
#[derive(Clone, Copy)]
struct Source {
    mapping: Mapping,
    offset: Bytes,
    length: Bytes,
}

impl Source {
    /// First and last byte of the mapping that are written to a page of the file; once if they lie in one page.
    fn of_page(self, index: u32) -> SmallVec<[u64; 2]> {
        let page = Pages(u64::from(index)).bytes().0;
        let first = page.saturating_sub(self.offset.0);
        let last = (page + PAGE_SIZE - self.offset.0).min(self.length.0) - 1;
        if first / PAGE_SIZE == last / PAGE_SIZE { smallvec![first] } else { smallvec![first, last] }
    }
}

/// The pages that a part of a file lies in: first, and one past the last.
fn pages_of(offset: Bytes, length: Bytes) -> Result<(u64, u64)> {
    let end = offset.0.checked_add(length.0).ok_or(SysError::Invalid)?;
    let first = offset.0 / PAGE_SIZE;
    Ok((first, if length.0 == 0 { first } else { Bytes(end).pages_up().0 }))
}

impl SysTwin {
    pub(super) fn descriptors<R>(&self, call: impl FnOnce(&mut Descriptors) -> R) -> R {
        self.task.ctx.with(|world, _| call(&mut world.processes.of_mut(self.process).files))
    }

    /// The readahead state of a file that is held.
    pub(super) fn readahead(&self, fd: Fd) -> Readahead {
        self.task.ctx.with(|world, _| {
            let pages_max = world.readahead_pages;
            world.processes.of_mut(self.process).files.readahead(fd, pages_max)
        })
    }

    /// Holds an open file for a call.
    pub(super) fn fget(&self, fd: Fd) -> Result<FileId> {
        self.descriptors(|files| files.hold(fd))
    }

    /// The call is over.
    pub(super) fn fput(&self, fd: Fd) {
        if let Some(handle) = self.descriptors(|files| files.put(fd)) {
            self.close_handle(handle);
        }
    }

    /// Lets go of an open file that is in no table any more.
    pub(super) fn close_handle(&self, handle: Handle) {
        self.task.mm(|mm, env| mm.vfs_close(env, handle));
    }

    /// Size of a file in bytes.
    pub(super) fn size(&self, file: FileId) -> Bytes {
        let pages = Pages(u64::from(self.task.look(|mm| mm.inode_size_pages(file))));
        self.task.ctx.with(|world, _| world.processes.size(file, pages))
    }

    pub(super) async fn close_file(&self, fd: Fd) -> Result<()> {
        if let Some(handle) = self.descriptors(|files| files.close(fd))? {
            self.close_handle(handle);
        }
        Ok(())
    }

    /// Writes the first `length` bytes of a mapping.
    pub(super) async fn write_mapped(&self, fd: Fd, offset: Bytes, source: Mapping, length: Bytes) -> Result<()> {
        self.check_part(source, length)?;
        self.write_file(fd, offset, length, Some(source)).await
    }

    /// Writes, from the first bytes of a mapping or from what is always in memory.
    pub(super) async fn write_file(&self, fd: Fd, offset: Bytes, length: Bytes, source: Option<Mapping>) -> Result<()> {
        let (first, end) = pages_of(offset, length)?;
        if end > FILE_PAGES_MAX {
            return Err(SysError::FileTooLarge);
        }
        let file = self.fget(fd)?;
        self.task.mm(|mm, _| mm.charge_write_call(file));
        let before = self.size(file);
        let mut next = first as u32;
        let before_writing = self.task.writes_to(Some(self.task.look(|mm| mm.device_of(file))));
        let source = source.map(|mapping| Source { mapping, offset, length });
        let result = self.write_pages(file, &mut next, end as u32, source).await;
        self.task.writes_to(before_writing);
        if u64::from(next) > first {
            let whole = Pages(u64::from(next)).bytes();
            self.extend(file, before, Bytes(whole.0.min(offset.0 + length.0)));
        }
        self.fput(fd);
        result
    }

    /// Moves the end of a file that was `before` and is written up to `written`.
    fn extend(&self, file: FileId, before: Bytes, written: Bytes) {
        // Unless another writer has extended the file further meanwhile.
        let last = u64::from(self.task.look(|mm| mm.inode_size_pages(file))) == written.pages_up().0;
        if written > before && last {
            self.task.ctx.with(|world, _| world.processes.set_end(file, written));
        }
    }

    /// Writes the pages from `next` up to `end`; `next` is the first that is not written. The source is faulted in before each
    /// folio (`iov_iter_fault_in_readable()`).
    async fn write_pages(&self, file: FileId, next: &mut u32, end: u32, source: Option<Source>) -> Result<()> {
        if *next < end {
            self.until_satisfied(|world, ctl| world.enter(ctl, |mm, env| mm.vfs_update_time(env, file))).await?;
        }
        while *next < end {
            if self.task.fatal_signal_pending() {
                return Err(SysError::Killed);
            }
            let chunk = self.task.look(|mm| mm.write_chunk_pages(file, *next)).min(end - *next);
            if let Some(source) = source {
                for index in *next..*next + chunk {
                    self.fault_in_many(source.mapping, &source.of_page(index), Access::Read).await?;
                }
            }
            let mut write = PageWrite::new(file, *next, chunk);
            let result = self.write_folio(&mut write).await;
            self.free_hand(write.hand);
            let (written, dirtied) = result?;
            *next += written;
            if dirtied > 0 {
                self.task.balance_dirty_pages(file, dirtied).await;
            }
            self.task.ctx.preempt_point().await;
        }
        Ok(())
    }

    /// Writes what lies in one folio; says how many pages those are, and how many became dirty. What was allocated and is left over
    /// stays in hand.
    async fn write_folio(&self, write: &mut PageWrite) -> Result<(u32, u32)> {
        loop {
            match self.task.mm(|mm, env| mm.write_page(env, write)) {
                WriteStop::Done { written, dirtied } => return Ok((written, dirtied)),
                WriteStop::Need(need @ Need::Page(request)) => {
                    write.hand = self.task.alloc_pages_slowpath(request).await;
                    if write.hand.is_none() && !need.is_optional() {
                        return Err(SysError::NoMemory);
                    }
                }
                WriteStop::Need(need) => self.satisfy(need).await?,
                WriteStop::Wait(pfn) => self.task.wait_on_page_bit(pfn, Frame::LOCKED | Frame::WRITEBACK).await,
            }
        }
    }

    /// Gives back a page that was allocated for an operation that does not need it after all.
    fn free_hand(&self, hand: Option<Pfn>) {
        if let Some(pfn) = hand {
            self.task.mm(|mm, env| mm.free_hand(env, &mut Some(pfn)));
        }
    }

    pub(super) async fn read_file(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<Bytes> {
        let (first, wanted) = pages_of(offset, length)?;
        let file = self.fget(fd)?;
        self.task.mm(|mm, _| mm.charge(mm.costs.read_call));
        let read = Bytes(length.0.min(self.size(file).0.saturating_sub(offset.0)));
        let end = if read == Bytes(0) { first } else { Bytes(offset.0 + read.0).pages_up().0 };
        let mut result = Ok(());
        if first < end {
            result = self.read_pages(fd, file, first as u32, end as u32).await;
        }
        if result.is_ok() && read < length {
            result = self.read_past_end(file, Bytes(offset.0 + read.0)).await;
        }
        if first < wanted {
            // Of a read that failed, and of one past the end too.
            let touched = self.until_satisfied(|world, ctl| world.enter(ctl, |mm, env| mm.vfs_touch_atime(env, file)));
            result = result.and(touched.await);
        }
        self.fput(fd);
        result.map(|()| read)
    }

    /// A read goes on at `at`, which is not before the end of the file.
    async fn read_past_end(&self, file: FileId, at: Bytes) -> Result<()> {
        let Ok(index) = u32::try_from(at.pages_down().0) else { return Ok(()) };
        // In a page that has data there is no need to look further.
        if index < self.task.look(|mm| mm.inode_size_pages(file)) {
            return Ok(());
        }
        let mut hand = None;
        loop {
            match self.task.mm(|mm, env| mm.read_past_end(env, file, index, &mut hand)) {
                Ok(()) => return Ok(()),
                Err(Need::Page(request)) => {
                    hand = Some(self.task.alloc_pages_slowpath(request).await.ok_or(SysError::NoMemory)?);
                }
                Err(need) => self.satisfy(need).await?,
            }
        }
    }

    async fn read_pages(&self, fd: Fd, file: FileId, first: u32, end: u32) -> Result<()> {
        for index in first..end {
            let mut readahead = self.readahead(fd);
            if index > first {
                readahead = readahead.after(index - 1);
            }
            let mut hand = None;
            let read = self.read_one(file, index, end - index, &mut readahead, &mut hand).await;
            if read.is_err() {
                self.task.mm(|mm, env| mm.abandon_read(env, file, &mut readahead));
                self.free_hand(hand);
            }
            self.descriptors(|files| files.keep_readahead(fd, readahead));
            read?;
            self.task.ctx.preempt_point().await;
        }
        Ok(())
    }

    /// Reads pages that were submitted together.
    pub(super) async fn read_file_batch(&self, fd: Fd, pages: &[u32]) -> Result<()> {
        let file = self.fget(fd)?;
        let size = self.task.look(|mm| mm.inode_size_pages(file));
        let mut readahead = self.readahead(fd);
        let (mut at, mut result) = (0, Ok(()));
        self.task.look(|mm| mm.look_ahead_cached(file, pages));
        while at < pages.len() && result.is_ok() {
            at += self.task.mm(|mm, env| mm.read_cached(env, file, &pages[at..], &mut readahead));
            let Some(index) = pages.get(at).filter(|index| **index < size) else { break };
            let mut hand = None;
            self.task.mm(|mm, _| mm.charge(mm.costs.io_uring_read));
            result = self.read_one(file, *index, 1, &mut readahead, &mut hand).await;
            if result.is_err() {
                self.task.mm(|mm, env| mm.abandon_read(env, file, &mut readahead));
                self.free_hand(hand);
            }
            at += 1;
            self.task.ctx.preempt_point().await;
        }
        self.descriptors(|files| files.keep_readahead(fd, readahead));
        self.fput(fd);
        result
    }

    async fn read_one(
        &self,
        file: FileId,
        index: u32,
        wanted: u32,
        readahead: &mut Readahead,
        hand: &mut Option<Pfn>,
    ) -> Result<()> {
        self.task.ctx.preempt_point().await;
        while !self.task.fatal_signal_pending() {
            // The file may have become shorter while this slept.
            if index >= self.task.look(|mm| mm.inode_size_pages(file)) {
                self.task.mm(|mm, env| mm.abandon_read(env, file, readahead));
                self.free_hand(hand.take());
                return Ok(());
            }
            match self.task.mm_reading(|mm, env| mm.read_page(env, file, index, wanted, readahead, hand)).await {
                ReadStop::Done => return Ok(()),
                ReadStop::Submit => {}
                ReadStop::Need(need @ Need::Page(request)) => {
                    *hand = self.task.alloc_pages_slowpath(request).await;
                    // Readahead may fail; the page itself may not.
                    if hand.is_none() && !need.is_optional() {
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
            FileAdvice::Normal | FileAdvice::Sequential | FileAdvice::Random => {
                self.descriptors(|files| files.advise(fd, advice));
            }
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
            mm.set_inode_size_pages(env, file, pages as u32);
        });
        self.task.ctx.with(|world, _| world.processes.set_end(file, length));
        self.fput(fd);
        Ok(())
    }

    pub(super) async fn sync_file(&self, fd: Fd) -> Result<()> {
        let file = self.fget(fd)?;
        self.task.sync_file(file).await;
        let mut seen = self.descriptors(|files| files.errors_seen(fd));
        let failed = self.task.mm(|mm, _| mm.report_write_error(file, &mut seen));
        self.descriptors(|files| files.keep_errors_seen(fd, seen));
        self.fput(fd);
        if failed { Err(SysError::Io) } else { Ok(()) }
    }

    pub(super) async fn sync_all(&self) -> Result<()> {
        self.task.sync_all().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use mm::pagecache::Slot;
    use mm::stat::NodeStat;
    use mm::vfs::FsKind;
    use profile::{Kernel, Machine};
    use sim::{PsiGroup, Resource};
    use sys::{FileName, OpenMode, SpawnOptions, Sys};
    use units::{Nanos, NodeId};

    use super::*;
    use crate::RunSpec;
    use crate::run::{boot, start_workload};

    const OTHERS: Nanos = Nanos::millis(3);

    /// Whether a thread that was entitled to the only CPU while another read a page from memory saw that page locked, and how long
    /// somebody stalled for memory, if the page was part of the working set or not.
    fn preempted_reader(workingset: bool) -> (bool, Nanos) {
        let machine = Machine::load("guest-512m-free").expect("built in");
        let kernel = Kernel::load("6.1").expect("built in");
        let mut sim = boot(&RunSpec::new(machine, kernel)).expect("it has room");
        let locked = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&locked);
        start_workload(&mut sim, |sys| async move {
            let name = FileName { dir: sys.mkdir("d").await?, number: 0 };
            let fd = sys.open(name, OpenMode::Create).await?;
            sys.write(fd, Bytes(0), Bytes(PAGE_SIZE)).await?;
            sys.fsync(fd).await?;
            sys.fadvise(fd, FileAdvice::DontNeed).await?;
            let file = sys.fget(fd)?;
            let page = move |mm: &mm::Mm| match mm.pagecache_get(file, 0) {
                Slot::Page(pfn) => pfn,
                slot => panic!("{slot:?}"),
            };
            let other = sys.spawn(SpawnOptions::thread("other"), move |sys| async move {
                seen.store(sys.task.look(|mm| mm.frames[page(mm)].has(Frame::LOCKED)), Ordering::Relaxed);
                sys.compute(OTHERS).await;
            });
            let mut ra = Readahead::default();
            let stop = sys.task.mm_reading(|mm, env| {
                // Longer than its part of any period: a tick takes the CPU away.
                mm.charge(Nanos::millis(30).0);
                let stop = mm.read_page(env, file, 0, 1, &mut ra, &mut None);
                let pfn = page(mm);
                if workingset {
                    mm.frames[pfn].set(Frame::WORKINGSET);
                }
                stop
            });
            assert_eq!(stop.await, ReadStop::Submit);
            assert!(sys.task.look(|mm| mm.frames[page(mm)].has(Frame::UPTODATE)), "the device copies");
            sys.fput(fd);
            sys.join(other).await;
            Ok(())
        });
        sim.run().expect("nobody waits for ever");
        let [some, _] = sim.with_world(|_, ctl| ctl.pressure(PsiGroup::SYSTEM, Resource::Memory));
        (locked.load(Ordering::Relaxed), some.total)
    }

    #[test]
    fn who_is_due_gives_way_before_its_read_and_stalls_if_it_reads_the_working_set() {
        let (locked, stalled) = preempted_reader(true);
        assert!(locked && stalled >= OTHERS, "{locked} {stalled:?}");
        assert_eq!(preempted_reader(false), (true, Nanos::ZERO));
    }

    #[test]
    fn a_page_of_the_file_takes_its_part_of_the_source() {
        let parts = |offset, length, pages: std::ops::Range<u32>| {
            let mapping = Mapping { id: 0, length: Bytes(length) };
            let source = Source { mapping, offset: Bytes(offset), length: Bytes(length) };
            pages.map(|page| source.of_page(page).to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(parts(0, 8192, 0..2), [[0], [4096]]);
        // Its first byte goes to the last of a page of the file, the rest to the next, which takes one of the mapping's second page.
        assert_eq!(parts(4095, 4097, 0..2), [vec![0], vec![1, 4096]]);
        assert_eq!(parts(8192, 10, 2..3), [[0]]);
    }

    /// A buffer of 64 pages is swapped out when memory is filled once over. A fault that finds its page in no memory reads at most 8 from
    /// the device (`page-cluster` 3).
    #[test]
    fn a_write_waits_for_pages_of_its_source_that_were_swapped_out() {
        let machine = Machine::load("guest-512m-free").expect("built in");
        let kernel = Kernel::load("6.1").expect("built in");
        let mut sim = boot(&RunSpec::new(machine, kernel)).expect("it has room");
        start_workload(&mut sim, |sys| async move {
            let buffer = sys.mmap(Bytes::kib(256), Bytes(PAGE_SIZE)).await?;
            sys.touch(buffer, Bytes(0), Bytes::kib(256), Access::Write).await?;
            let all = sys.mmap(Bytes::mib(512), Bytes(PAGE_SIZE)).await?;
            sys.touch(all, Bytes(0), Bytes::mib(512), Access::Write).await?;
            assert!((0..64).all(|page| !sys.mincore(buffer, Pages(page).bytes())), "it is the oldest");
            let faults = |mm: &mm::Mm| mm.stat.event(mm::stat::VmEvent::Pgmajfault);
            let before = sys.task.look(faults);
            let name = FileName { dir: sys.mkdir("d").await?, number: 0 };
            let fd = sys.open(name, OpenMode::Create).await?;
            sys.write_from(fd, Bytes(0), buffer, Bytes::kib(256)).await?;
            assert!(sys.task.look(faults) - before >= 64 / 8);
            assert_eq!(sys.stat(name).await?, Bytes::kib(256));
            sys.close(fd).await
        });
        sim.run().expect("nobody waits for ever");
    }

    /// 200 files take at least 13 blocks of inodes and one of their directory, which the journal has committed and the device has then.
    #[test]
    fn sync_leaves_nothing_of_an_ext4_to_be_written() {
        let machine = Machine::load("guest-512m-free").expect("built in");
        let kernel = Kernel::load("6.1").expect("built in");
        let mut sim = boot(&RunSpec::new(machine, kernel)).expect("it has room");
        let dirty = Arc::new(AtomicU64::new(u64::MAX));
        let seen = Arc::clone(&dirty);
        start_workload(&mut sim, |sys| async move {
            let dir = sys.mkdir("d").await?;
            for number in 0..200 {
                let fd = sys.open(FileName { dir, number }, OpenMode::Create).await?;
                sys.write(fd, Bytes(0), Bytes(PAGE_SIZE)).await?;
                sys.close(fd).await?;
            }
            let read = |item| move |mm: &mm::Mm| mm.stat.node(NodeId(0), item);
            let written = sys.task.look(read(NodeStat::Written));
            sys.sync().await?;
            let [pages, inodes, directory] = [200, 13, 1];
            assert!(sys.task.look(read(NodeStat::Written)) - written >= pages + inodes + directory);
            seen.store(sys.task.look(read(NodeStat::FileDirty)), Ordering::Relaxed);
            let fs = sys.task.look(|mm| mm.vfs_file_systems(FsKind::Ext4));
            assert!(!fs.is_empty() && fs.iter().all(|fs| sys.task.look(|mm| mm.vfs_commit_due(*fs)).is_none()));
            Ok(())
        });
        sim.run().expect("nobody waits for ever");
        assert_eq!(dirty.load(Ordering::Relaxed), 0);
    }
}
