//! Pages become dirty, and clean again without being written.
//!
//! Rule: a page that was clean counts as dirty for its node, its zone and its device, tags its place in the tree, and
//! puts its inode on the list of dirty ones. A page that reclaim wanted back loses that mark when it is dirtied.
//! Source: `set_page_dirty()`, `account_page_dirtied()`, `account_page_cleaned()`, mm/page-writeback.c,
//! `__mark_inode_dirty()`, fs/fs-writeback.c (4.20; 6.12 the same).

use units::{FileId, Pfn};

use super::inodes::On;
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
        let (device, listed) = self.dirty_state_of(FileId(file));
        let state = self.writeback.device_mut(device);
        state.reclaimable += 1;
        state.dirtied += 1;
        if !listed {
            self.list_dirty_inode(env, FileId(file));
        }
        true
    }

    /// Device of a file, and whether it is on a list; makes its record if there is none.
    #[inline]
    fn dirty_state_of(&mut self, file: FileId) -> (u16, bool) {
        let device = self.device_of(file);
        if let Some(record) = self.writeback.records.get(file) {
            return (device, record.on() != On::Nothing);
        }
        self.writeback.records.add(file);
        (device, false)
    }

    /// The inode got its first dirty page.
    fn list_dirty_inode(&mut self, env: &Env, file: FileId) {
        let device = self.device_of(file);
        let first = !self.writeback.device_mut(device).has_dirty_io();
        let state = &mut self.writeback.devices[usize::from(device)];
        let jiffy = state.dirtied_now(&self.writeback.records, env.now);
        self.writeback.records[file.0].set_dirtied_when(jiffy);
        state.move_inode(&mut self.writeback.records, file.0, On::Dirty);
        self.inode_dirty(file, true);
        if first && self.tunables.dirty_writeback_centisecs > 0 {
            let at = env.now + self.flush_interval();
            self.writeback.devices[usize::from(device)].armed = Some(at);
            self.effects.push(Effect::ArmFlusher(device, at));
        }
    }

    /// The flusher, or truncation, found the inode clean: off the lists.
    pub(super) fn unlist_dirty_inode(&mut self, file: FileId) {
        let device = self.device_of(file);
        let state = &mut self.writeback.devices[usize::from(device)];
        state.move_inode(&mut self.writeback.records, file.0, On::Nothing);
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
        let (file, index) = self.file_home(pfn);
        self.untag_dirty(pfn);
        self.release_delalloc(env, file, index);
        self.stat.zone_add(self.zone_of(pfn), ZoneStat::WritePending, -1);
    }

    /// A page whose `DIRTY` flag was just cleared is not dirty: tags and counters but for `WritePending`.
    #[inline]
    pub(super) fn untag_dirty(&mut self, pfn: Pfn) {
        let (FileId(file), index) = self.file_home(pfn);
        self.pagecache.trees.clear_dirty(file, index);
        self.stat.node_add(self.node_of(pfn), NodeStat::FileDirty, -1);
        self.memcg.count_dirty(pfn, -1);
        let device = self.device_of(FileId(file));
        self.writeback.devices[usize::from(device)].reclaimable -= 1;
    }
}
