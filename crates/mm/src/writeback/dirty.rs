//! Pages become dirty, and clean again without being written.
//!
//! Rule: a page that was clean counts as dirty for its node, its zone and its owner's writeback (owner.rs), tags its place in the tree, and
//! puts its inode on the list of dirty ones. A page that reclaim wanted back loses that mark when it is dirtied. All pages of a large
//! folio count, and those that were changed are tagged ([`LargeFolios`]).
//! Source: `set_page_dirty()`, `account_page_dirtied()`, `account_page_cleaned()`, mm/page-writeback.c,
//! `__mark_inode_dirty()`, fs/fs-writeback.c (4.20; 6.12 the same); `iomap_dirty_folio()`, fs/iomap/buffered-io.c (6.12).
//! Since/until: [`Redirtied`].
//! Abstracted: a page that counts as dirtied again does not count for the share of the task whose reclaim offered it (`task_dirty_inc()`, 3.1).

use std::ops::Range;

use rules::{LargeFolios, Redirtied};
use units::{FileId, Pfn};

use super::WbId;
use super::inodes::On;
use crate::stat::{NodeStat, ZoneStat};
use crate::{Effect, Env, Frame, Kind, Mm};

impl Mm {
    /// Marks all of a folio of the page cache dirty; says how many pages that are, if it was clean.
    #[inline]
    pub fn set_page_dirty(&mut self, env: &Env, pfn: Pfn) -> u32 {
        self.set_range_dirty(env, pfn, self.folio_indices(pfn))
    }

    /// Marks some pages of a folio dirty, or all where they are not told apart; says how many pages it has, if it was clean.
    #[inline]
    pub(crate) fn set_range_dirty(&mut self, env: &Env, pfn: Pfn, indices: Range<u32>) -> u32 {
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.kind() == Kind::File);
        frame.clear(Frame::RECLAIM);
        let (was_dirty, pages) = (frame.has(Frame::DIRTY), frame.nr_pages());
        let whole = pages == 1 || self.rules.large_folios == LargeFolios::Read;
        if was_dirty && whole {
            return 0;
        }
        self.frames[pfn].set(Frame::DIRTY);
        let (file, _) = self.file_home(pfn);
        for index in if whole { self.folio_indices(pfn) } else { indices } {
            if !self.pagecache.trees.is_dirty(file.0, index) {
                self.pagecache.trees.set_dirty(file.0, index);
                self.reserve_delalloc(file, index);
            }
        }
        if was_dirty {
            return 0;
        }
        let (wb, listed) = self.dirty_state_of(file, pfn);
        self.count_dirtied(pfn, wb);
        self.track_foreign(env, pfn, wb);
        if !listed {
            self.list_dirty_inode(env, file);
        }
        pages
    }

    /// A folio that was clean counts as dirty.
    #[inline]
    fn count_dirtied(&mut self, pfn: Pfn, wb: WbId) {
        let zone = self.zone_of(pfn);
        let (node, pages) = (self.zones[zone.index()].node, self.frames[pfn].nr_pages());
        self.stat.node_add(node, NodeStat::FileDirty, pages.into());
        self.memcg.count_dirty(pfn, pages.into());
        self.stat.node_add(node, NodeStat::Dirtied, pages.into());
        self.stat.zone_add(zone, ZoneStat::WritePending, pages.into());
        let state = self.writeback.wbs.get_mut(wb);
        state.reclaimable += u64::from(pages);
        state.dirtied += u64::from(pages);
    }

    /// A dirty folio was to be written, and is left dirty (`redirty_page_for_writepage()`).
    pub(super) fn count_redirtied(&mut self, pfn: Pfn) {
        if self.rules.redirtied == Redirtied::CountsAgain {
            let (node, pages) = (self.node_of(pfn), self.frames[pfn].nr_pages());
            self.stat.node_add(node, NodeStat::Dirtied, pages.into());
        }
    }

    /// Whose a file is that gets a dirty page, and whether it is on a list; makes its record if there is none.
    #[inline]
    fn dirty_state_of(&mut self, file: FileId, pfn: Pfn) -> (WbId, bool) {
        if let Some(record) = self.writeback.records.get(file) {
            return (self.wb_of(file), record.on() != On::Nothing);
        }
        self.writeback.records.add(file);
        self.attach_by_page(file, pfn);
        (self.wb_of(file), false)
    }

    /// The inode got its first dirty page.
    fn list_dirty_inode(&mut self, env: &Env, file: FileId) {
        let wb = self.wb_of(file);
        let (state, records) = (&mut self.writeback.wbs[wb], &mut self.writeback.records);
        let first = !state.has_dirty_io();
        let jiffy = state.dirtied_now(records, env.now);
        records[file.0].set_dirtied_when(jiffy);
        state.move_inode(records, file.0, On::Dirty);
        self.inode_dirty(file, true);
        if first && self.tunables.dirty_writeback_centisecs > 0 {
            let at = env.now + self.flush_interval();
            self.writeback.wbs[wb].armed = Some(at);
            self.effects.push(Effect::ArmFlusher(wb, at));
        }
    }

    /// The flusher, or truncation, found the inode clean: off the lists.
    pub(super) fn unlist_dirty_inode(&mut self, file: FileId) {
        let wb = self.wb_of(file);
        let (state, records) = (&mut self.writeback.wbs[wb], &mut self.writeback.records);
        state.move_inode(records, file.0, On::Nothing);
        self.release_record(file);
        self.inode_dirty(file, false);
    }

    /// Frees a record that nothing needs any more.
    pub(super) fn release_record(&mut self, file: FileId) {
        let records = &self.writeback.records;
        let idle = records[file.0].on() == On::Nothing && records.under_writeback(file) == 0;
        if idle && self.pagecache.trees.nr_dirty(file.0) == 0 {
            self.writeback.records.free(file.0);
        }
    }

    /// All pages of a file were truncated: it is not dirty any more.
    pub(crate) fn forget_dirty_inode(&mut self, file: FileId) {
        self.pagecache.trees.writeback_index.set(file.0, 0);
        debug_assert!(self.pagecache.trees.nr_dirty(file.0) == 0);
        if self.writeback.records.get(file).is_some_and(|record| record.on() != On::Nothing) {
            self.unlist_dirty_inode(file);
        }
    }

    /// A page is dropped: if it was dirty, it is not any more, without having been written.
    pub(crate) fn account_cleaned(&mut self, env: &Env, pfn: Pfn) {
        if !self.frames[pfn].take(Frame::DIRTY) {
            return;
        }
        let (file, first) = self.file_home(pfn);
        let pages = self.frames[pfn].nr_pages();
        if pages == 1 {
            self.drop_dirty(env, file, first);
        } else {
            self.dirty_indices(pfn).into_iter().for_each(|index| self.drop_dirty(env, file, index));
        }
        self.count_cleaned(pfn, file);
        self.stat.zone_add(self.zone_of(pfn), ZoneStat::WritePending, -i64::from(pages));
    }

    /// What made a page of a file dirty is given up.
    pub(crate) fn drop_dirty(&mut self, env: &Env, file: FileId, index: u32) {
        self.pagecache.trees.clear_dirty(file.0, index);
        self.release_delalloc(env, file, index);
    }

    /// A folio whose `DIRTY` flag was just cleared does not count as dirty, but for `WritePending`.
    #[inline]
    pub(super) fn count_cleaned(&mut self, pfn: Pfn, file: FileId) {
        let pages = self.frames[pfn].nr_pages();
        self.stat.node_add(self.node_of(pfn), NodeStat::FileDirty, -i64::from(pages));
        self.memcg.count_dirty(pfn, -i64::from(pages));
        let wb = self.wb_of(file);
        self.writeback.wbs[wb].reclaimable -= u64::from(pages);
    }
}
