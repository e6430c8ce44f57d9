//! Dirty pages of one file become bios.
//!
//! Rule: dirty pages are taken in the order of their index; those that are still under an earlier writeback are
//! skipped, or waited for where the data must be on the device. Delayed allocation happens here, for the whole run of
//! dirty pages at once. Pages that follow each other in the file and on the device share a bio of up to 256 vectors; each holds
//! a page, or as many as lie side by side in memory ([`BioVectors`]), up to what the file system writes in one go.
//! A page of a device whose buffer the journal has taken over is under writeback for a moment, without I/O.
//! Source: `__block_write_full_folio()`, fs/buffer.c (6.12), `write_cache_pages()`, mm/page-writeback.c, `xfs_writepage_map()`, `xfs_add_to_ioend()`,
//! fs/xfs/xfs_aops.c (4.20); `iomap_writepages()`, `iomap_add_to_ioend()`, fs/iomap/buffered-io.c, `ext4_do_writepages()`,
//! `mpage_prepare_extent_to_map()`, fs/ext4/inode.c, `bio_add_folio()`, `bio_full()`, block/bio.c (6.12 on order-0 folios).
//! Abstracted: XFS allocates the whole delayed extent, here at most `XFS_DELALLOC` pages of it.
//! Omitted: pages beyond the end of the file.

use std::ops::Range;

use rules::BioVectors;
use units::{FileId, Pfn};

use super::ioend::IoendId;
use super::{WbId, jiffies};
use crate::pagecache::{Direction, Slot};
use crate::stat::{NodeStat, ZoneStat};
use crate::vfs::{Change, Extent, FsKind, Need};
use crate::{Bio, BioMemory, BioTarget, Env, Frame, Mm};

/// Most pages that XFS allocates at once: 1 GiB. A guess; it stops at an extent of 8 GiB.
const XFS_DELALLOC: u32 = 1 << 18;

/// Most pages that ext4 allocates, maps and submits at a time (`MAX_WRITEPAGES_EXTENT_LEN`): 8 MiB.
const EXT4_RUN: u32 = 2048;
/// Most pages that iomap, and XFS with it, puts into one write (`IOEND_BATCH_SIZE`): 16 MiB.
const XFS_RUN: u32 = 4096;

/// Why the writing of a file's pages stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Written {
    /// As many pages as asked for were written.
    Enough,
    /// No dirty page is left from here to the end.
    End,
    /// A page is under an earlier writeback, or locked; wait for it.
    Wait(Pfn),
    /// Blocks are to be allocated, and the journal is to be waited for.
    Journal(JournalWait),
}

/// What of a journal is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JournalWait {
    /// The inode is on its way to the log.
    Block,
    /// No more may be reserved.
    Credits,
}

/// What writing a part of a file's dirty pages did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WriteRun {
    /// Pages whose writeback was started.
    pub(crate) pages: u32,
    /// Where to go on.
    pub(crate) next: u32,
    /// Pages were left because their inode was locked.
    pub(crate) skipped: bool,
    pub(crate) stop: Written,
}

/// A bio that may grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Open {
    bio: Bio,
    file: FileId,
    run: Run,
    /// Vectors that it has taken.
    vectors: u32,
    /// The page added last.
    last: Pfn,
}

/// What is written in one go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    /// Page up to which the extent goes.
    extent_end: u32,
    /// ext4 has allocated the extent for it.
    allocated: bool,
    /// Reserved of the journal for the conversion of the extent.
    credits: u32,
}

/// The bio to which the next pages of a file are added; whoever writes the file keeps it until he is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpenBio {
    open: Option<Open>,
    /// Whoever writes does not wait for the inode's lock.
    trylock: bool,
    /// Pages that he may still write.
    left: u32,
}

impl Default for OpenBio {
    fn default() -> OpenBio {
        OpenBio { open: None, trylock: false, left: u32::MAX }
    }
}

impl OpenBio {
    /// For who waits for no lock.
    pub(crate) fn trylock() -> OpenBio {
        OpenBio { trylock: true, ..OpenBio::default() }
    }

    /// Whoever writes may write so many pages more.
    pub(crate) fn set_left(&mut self, pages: u64) {
        self.left = u32::try_from(pages).unwrap_or(u32::MAX);
    }

    /// Whether a page belongs to the run that is open.
    fn goes_on_with(&self, index: u32) -> bool {
        self.open.is_some_and(|open| index == open.bio.first_index() + open.bio.pages && index < open.run.extent_end)
    }
}

impl Mm {
    /// Starts the writeback of up to `max` dirty pages of a file from page `from` on, and submits them.
    pub(crate) fn write_dirty_pages(&mut self, env: &Env, file: FileId, from: u32, max: u32) -> WriteRun {
        let mut open = OpenBio::default();
        let run = self.write_into(env, file, from..u32::MAX, max, false, &mut open);
        self.submit_open(env, &mut open);
        run
    }

    /// Starts the writeback of up to `max` dirty pages of a file among `pages`; the last of them may be left in the
    /// open bio. With `sync` somebody waits for the data, and pages under an earlier writeback are waited for; locked ones
    /// always are.
    pub(crate) fn write_into(
        &mut self,
        env: &Env,
        file: FileId,
        pages: Range<u32>,
        max: u32,
        sync: bool,
        open: &mut OpenBio,
    ) -> WriteRun {
        let mut run = WriteRun { pages: 0, next: pages.start, skipped: false, stop: Written::Enough };
        let of_device = self.bdev_gfp(file).is_some();
        while run.pages < max {
            let Some(index) = self.pagecache.trees.next_dirty(file.0, run.next).filter(|index| *index < pages.end)
            else {
                run.stop = Written::End;
                break;
            };
            let Slot::Page(pfn) = self.pagecache_get(file, index) else {
                panic!("a dirty tag without a page: {file:?} {index}");
            };
            if self.frames[pfn].has(Frame::LOCKED) {
                self.frames[pfn].set(Frame::WAITERS);
                run.stop = Written::Wait(pfn);
                break;
            }
            if self.frames[pfn].has(Frame::WRITEBACK) {
                if sync {
                    self.frames[pfn].set(Frame::WAITERS);
                    run.stop = Written::Wait(pfn);
                    break;
                }
                run.next = index + 1;
                continue;
            }
            if open.trylock && !open.goes_on_with(index) && self.ilock_is_held(env, file) {
                self.count_redirtied(pfn);
                run.skipped = true;
                run.next = index + 1;
                continue;
            }
            if let Some(stop) = self.journal_wait(env, file, index) {
                run.stop = stop;
                break;
            }
            self.start_writeback(pfn, file);
            let pages = self.frames[pfn].nr_pages();
            if of_device && self.is_journal_dirty(file, index) {
                self.pagecache.trees.clear_dirty(file.0, index);
                self.end_page_writeback(file, index, self.wb_of(file), jiffies(env.now));
                run.next = index + 1;
            } else if pages == 1 {
                self.add_to_bio(env, open, pfn, (file, index), sync);
                self.pagecache.trees.clear_dirty(file.0, index);
                run.next = index + 1;
            } else {
                run.next = self.add_folio_to_bio(env, open, pfn, sync);
            }
            run.pages += pages;
            open.left = open.left.saturating_sub(pages);
        }
        if run.stop != Written::Enough {
            self.submit_open(env, open);
        }
        run
    }

    /// Adds the dirty pages of a large folio to the bio, and says what page follows it.
    fn add_folio_to_bio(&mut self, env: &Env, open: &mut OpenBio, pfn: Pfn, sync: bool) -> u32 {
        let ((file, first), dirty) = (self.file_home(pfn), self.dirty_indices(pfn));
        let end = self.folio_indices(pfn).end;
        self.begin_folio_io(pfn, Direction::Write, dirty.iter().copied());
        for index in dirty {
            self.add_to_bio(env, open, pfn.offset(index - first), (file, index), sync);
            self.pagecache.trees.clear_dirty(file.0, index);
        }
        end
    }

    /// What has to be waited for before the page's block can be allocated, where that takes a transaction of a journal.
    fn journal_wait(&mut self, env: &Env, file: FileId, index: u32) -> Option<Written> {
        if self.fs_kind(file) != FsKind::Ext4 || self.map_block(file, index).is_some() {
            return None;
        }
        let free = self.wait_for_log_room(env, self.fs_id(file)).and_then(|()| self.may_change_inode(file));
        match free {
            Err(Need::Written(pfn)) => Some(Written::Wait(pfn)),
            Err(_) => Some(Written::Journal(JournalWait::Block)),
            Ok(()) => (!self.has_credits_for(file)).then_some(Written::Journal(JournalWait::Credits)),
        }
    }

    /// Submits the open bio, if there is one.
    pub(crate) fn submit_open(&mut self, env: &Env, open: &mut OpenBio) {
        if let Some(id) = self.submit_part(env, open) {
            self.close_ioend(env, id);
        }
    }

    /// Submits the open bio, and says what it is part of.
    fn submit_part(&mut self, env: &Env, open: &mut OpenBio) -> Option<IoendId> {
        let Open { mut bio, file, run, .. } = open.open.take()?;
        if self.has_ioends(file, run.credits) {
            self.add_to_ioend(&mut bio, file, run.credits);
        }
        self.submit(env, bio);
        Some(bio.memory.ioend)
    }

    /// How many vectors a bio has with this page, of a file, added; `None` if it is full.
    fn vectors_with(&self, open: &Open, file: FileId, pfn: Pfn) -> Option<u32> {
        let run_max = match (self.rules.bio_vectors, self.fs_kind(file)) {
            (BioVectors::Pages, _) => self.bio_pages_max(open.bio.device),
            (BioVectors::Segments, FsKind::Ext4) => EXT4_RUN,
            (BioVectors::Segments, FsKind::Xfs) => XFS_RUN,
        };
        let beside = self.rules.bio_vectors == BioVectors::Segments && pfn.0 == open.last.0 + 1;
        let vectors = open.vectors + u32::from(!beside);
        if self.ends_chunk(&open.bio) {
            return None;
        }
        (open.bio.pages < run_max && vectors <= self.bio_vectors_max()).then_some(vectors)
    }

    /// Adds a page to the bio, or submits that and begins another.
    fn add_to_bio(&mut self, env: &Env, open: &mut OpenBio, pfn: Pfn, (file, index): (FileId, u32), sync: bool) {
        let grown = open.open.and_then(|open| Some((open, self.vectors_with(&open, file, pfn)?)));
        let grown = grown.filter(|(open, _)| index == open.bio.first_index() + open.bio.pages);
        if let Some((full, vectors)) = grown
            && index < full.run.extent_end
        {
            let bio = Bio { pages: full.bio.pages + 1, ..full.bio };
            open.open = Some(Open { bio, vectors, last: pfn, ..full });
            return;
        }
        let mapped = self.map_block(file, index);
        let allocated = mapped.is_none() && self.fs_kind(file) == FsKind::Ext4;
        let Extent { device, sector, pages } =
            mapped.unwrap_or_else(|| self.allocate_delayed(env, file, index, open.left));
        debug_assert!(pages > 0);
        let run = Run { extent_end: index.saturating_add(pages), allocated, credits: 0 };
        if let Some((full, vectors)) = grown
            && !(full.run.allocated || allocated)
            && full.bio.device == device
            && sector == full.bio.sector + u64::from(full.bio.pages) * 8
        {
            // Another extent that happens to lie right behind: the same bio.
            let bio = Bio { pages: full.bio.pages + 1, ..full.bio };
            open.open = Some(Open { bio, run, vectors, last: pfn, ..full });
            return;
        }
        // The same run goes on where a bio was full.
        let (ioend, run) = match open.open.filter(|_| open.goes_on_with(index)) {
            Some(full) => (self.submit_part(env, open).unwrap_or(IoendId::NONE), full.run),
            None => {
                self.submit_open(env, open);
                let credits = if allocated { self.reserve_conversion(file) } else { 0 };
                (IoendId::NONE, Run { credits, ..run })
            }
        };
        let bio = Bio {
            device,
            sector,
            pages: 1,
            write: true,
            sync,
            target: BioTarget::File { file, index },
            memory: BioMemory { ioend, ..BioMemory::NONE },
        };
        open.open = Some(Open { bio, file, run, vectors: 1, last: pfn });
    }

    /// Allocates blocks for the run of dirty pages that begins here, of which up to `left` are about to be written.
    fn allocate_delayed(&mut self, env: &Env, file: FileId, index: u32, left: u32) -> Extent {
        let most = match self.fs_kind(file) {
            FsKind::Xfs => XFS_DELALLOC,
            FsKind::Ext4 => EXT4_RUN.min(left),
        };
        let run = self.pagecache.trees.dirty_run(file.0, index, most).max(1);
        let extent = self.allocate_missing(env, file, index, run);
        self.charge(self.by_fs(file, self.costs.allocate_extent, self.costs.allocate_ext4));
        self.charge_transaction(file, Change::Allocate);
        self.note_extent_added(env, file);
        self.log_item_nowait(env, file);
        extent
    }

    /// A dirty folio is being written from now on (`clear_page_dirty_for_io()`, `set_page_writeback()`); the tags of its pages are the
    /// caller's.
    #[inline]
    fn start_writeback(&mut self, pfn: Pfn, owner: FileId) {
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.has(Frame::DIRTY) && !frame.has_any(Frame::WRITEBACK | Frame::LOCKED));
        frame.clear(Frame::DIRTY);
        frame.set(Frame::WRITEBACK);
        let pages = frame.nr_pages();
        self.count_cleaned(pfn, owner);
        self.writeback.records.begin_writeback(owner);
        let wb = self.wb_of(owner);
        self.writeback.wbs[wb].writeback += u64::from(pages);
        self.stat.node_add(self.node_of(pfn), NodeStat::Writeback, pages.into());
        self.memcg.count_writeback(pfn, pages.into());
        self.charge(self.costs.writeback_page + self.by_fs(owner, self.costs.writeback_xfs, self.costs.writeback_ext4));
    }

    /// A page under writeback is not any more: counters of its file.
    pub(crate) fn record_end_writeback(&mut self, pfn: Pfn) {
        let (file, _) = self.file_home(pfn);
        self.writeback.records.end_writeback(file);
        self.release_record(file);
    }

    /// The same for its node, zone and owner's writeback.
    #[inline]
    pub(super) fn count_written(&mut self, pfn: Pfn, wb: WbId, now: u64) {
        let (zone, node) = (self.zone_of(pfn), self.node_of(pfn));
        let pages = u64::from(self.frames[pfn].nr_pages());
        self.stat.node_add(node, NodeStat::Writeback, -(pages as i64));
        self.memcg.count_writeback(pfn, -(pages as i64));
        self.stat.node_add(node, NodeStat::Written, pages as i64);
        self.stat.zone_add(zone, ZoneStat::WritePending, -(pages as i64));
        let state = &mut self.writeback.wbs[wb];
        state.writeback -= pages;
        state.written += pages;
        self.count_share(wb, pages, now);
    }
}
