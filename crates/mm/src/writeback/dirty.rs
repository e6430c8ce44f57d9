//! Pages become dirty, and clean again without being written.
//!
//! Rule: a page that was clean counts as dirty for its node, its zone and its device, tags its place in the tree, and
//! puts its inode on the list of dirty ones. A page that reclaim wanted back loses that mark when it is dirtied.
//! Source: `set_page_dirty()`, `account_page_dirtied()`, `account_page_cleaned()`, mm/page-writeback.c,
//! `__mark_inode_dirty()`, fs/fs-writeback.c (4.20; 6.12 the same).

use units::{FileId, Pfn};

use super::inodes::On;
use crate::pagecache::NO_RECORD;
use crate::stat::{NodeStat, ZoneStat};
use crate::{Effect, Env, Frame, Kind, Mm};

impl Mm {
    /// Marks a page of the page cache dirty; says whether it was clean.
    #[inline]
    pub fn set_page_dirty(&mut self, env: &Env, pfn: Pfn) -> bool {
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.kind() == Kind::File);
        frame.clear(Frame::RECLAIM);
        if frame.has(Frame::DIRTY) {
            return false;
        }
        frame.set(Frame::DIRTY);
        let (file, index) = self.pagecache.trees.home(frame.place);
        self.pagecache.trees.set_dirty(file, index);
        self.reserve_delalloc(FileId(file), index);
        let zone = self.zone_of(pfn);
        let node = self.zones[zone.index()].node;
        self.stat.node_add(node, NodeStat::FileDirty, 1);
        self.memcg.count_dirty(pfn, 1);
        self.stat.node_add(node, NodeStat::Dirtied, 1);
        self.stat.zone_add(zone, ZoneStat::WritePending, 1);
        let record = self.record_for(FileId(file));
        let state = &mut self.writeback.records[record];
        state.nr_dirty += 1;
        let (device, listed) = (state.device, state.on != On::Nothing);
        let state = self.writeback.device_mut(device);
        state.reclaimable += 1;
        state.dirtied += 1;
        if !listed {
            self.list_dirty_inode(env, record);
        }
        true
    }

    /// The record of a file, made if there is none.
    #[inline]
    pub(super) fn record_for(&mut self, file: FileId) -> u32 {
        let record = self.pagecache.trees.files[file.index()].record;
        if record != NO_RECORD {
            return record;
        }
        let device = self.device_of(file);
        let record = self.writeback.records.add(file, device);
        self.pagecache.trees.files[file.index()].record = record;
        record
    }

    /// The inode got its first dirty page.
    fn list_dirty_inode(&mut self, env: &Env, record: u32) {
        let (device, file) = (self.writeback.records[record].device, self.writeback.records[record].file);
        let first = !self.writeback.device_mut(device).has_dirty_io();
        let state = &mut self.writeback.devices[usize::from(device)];
        let jiffy = state.dirtied_now(&self.writeback.records, env.now);
        self.writeback.records[record].set_dirtied_when(jiffy);
        state.move_inode(&mut self.writeback.records, record, On::Dirty);
        self.inode_dirty(FileId(file), true);
        if first && self.tunables.dirty_writeback_centisecs > 0 {
            self.effects.push(Effect::ArmFlusher(device, env.now + self.flush_interval()));
        }
    }

    /// The flusher, or truncation, found the inode clean: off the lists.
    pub(super) fn unlist_dirty_inode(&mut self, record: u32) {
        let (device, file) = (self.writeback.records[record].device, self.writeback.records[record].file);
        let state = &mut self.writeback.devices[usize::from(device)];
        state.move_inode(&mut self.writeback.records, record, On::Nothing);
        self.release_record(record);
        self.inode_dirty(FileId(file), false);
    }

    /// Frees a record that nothing needs any more.
    pub(super) fn release_record(&mut self, record: u32) {
        let state = &self.writeback.records[record];
        if state.on == On::Nothing && state.nr_dirty == 0 && state.nr_writeback == 0 {
            self.pagecache.trees.files[state.file as usize].record = NO_RECORD;
            self.writeback.records.free(record);
        }
    }

    /// All pages of a file were truncated: it is not dirty any more.
    pub(crate) fn forget_dirty_inode(&mut self, file: FileId) {
        let Some(cache) = self.pagecache.trees.files.get(file.index()) else { return };
        self.pagecache.trees.writeback_index.take(file.0);
        let record = cache.record;
        if record == NO_RECORD {
            return;
        }
        debug_assert!(self.writeback.records[record].nr_dirty == 0);
        if self.writeback.records[record].on != On::Nothing {
            self.unlist_dirty_inode(record);
        }
    }

    /// A page is dropped: if it was dirty, it is not any more, without having been written.
    pub(crate) fn account_cleaned(&mut self, pfn: Pfn) {
        if !self.frames[pfn].take(Frame::DIRTY) {
            return;
        }
        let (file, index) = self.file_home(pfn);
        self.untag_dirty(pfn);
        self.release_delalloc(file, index);
        self.stat.zone_add(self.zone_of(pfn), ZoneStat::WritePending, -1);
    }

    /// A page whose `DIRTY` flag was just cleared is not dirty: tags and counters but for `WritePending`.
    #[inline]
    pub(super) fn untag_dirty(&mut self, pfn: Pfn) -> u32 {
        let (FileId(file), index) = self.file_home(pfn);
        self.pagecache.trees.clear_dirty(file, index);
        self.stat.node_add(self.node_of(pfn), NodeStat::FileDirty, -1);
        self.memcg.count_dirty(pfn, -1);
        let record = self.pagecache.trees.files[file as usize].record;
        let state = &mut self.writeback.records[record];
        state.nr_dirty -= 1;
        let device = state.device;
        self.writeback.devices[usize::from(device)].reclaimable -= 1;
        record
    }
}
