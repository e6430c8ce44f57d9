//! Recount of dirty pages and inodes.

use std::collections::BTreeMap;

use units::{FileId, NodeId, Pfn, ZoneId};

use super::WbId;
use super::inodes::On;
use crate::stat::{NodeStat, ZoneStat};
use crate::{Frame, Kind, Mm, Violation};

impl Mm {
    /// Checks that the counters of dirty pages and of pages under writeback equal a recount, by node, zone, owner and
    /// file, and that each dirty inode is on one list. Anonymous pages under writeback count for node and zone.
    pub(crate) fn validate_writeback(&self, violations: &mut Vec<Violation>) {
        let mut nodes = vec![(0u64, 0u64); self.nodes.len()];
        let mut zones = vec![0u64; self.zones.len()];
        let mut owned = BTreeMap::new();
        for n in 0..self.frames.len() as u32 {
            let frame = &self.frames[Pfn(n)];
            let orphan = frame.kind() == Kind::Held && frame.has(Frame::WRITEBACK);
            if !orphan && !matches!(frame.kind(), Kind::File | Kind::Anon) {
                continue;
            }
            let pages = u64::from(frame.nr_pages());
            let dirty = if frame.kind() == Kind::File && frame.has(Frame::DIRTY) { pages } else { 0 };
            let writeback = if frame.has(Frame::WRITEBACK) { pages } else { 0 };
            let node = &mut nodes[self.node_of(Pfn(n)).index()];
            (node.0, node.1) = (node.0 + dirty, node.1 + writeback);
            zones[self.zone_of(Pfn(n)).index()] += dirty + writeback;
            if dirty > 0 {
                *owned.entry(self.wb_of(self.file_home(Pfn(n)).0)).or_default() += dirty;
            }
        }
        let mut wrong = |what: String| violations.push(Violation { place: "writeback", pfn: None, what });
        for (n, &(dirty, writeback)) in nodes.iter().enumerate() {
            let node = NodeId(n as u8);
            for (item, pages) in [(NodeStat::FileDirty, dirty), (NodeStat::Writeback, writeback)] {
                if self.stat.node(node, item) != pages {
                    wrong(format!("node {n}: {} is {}, {pages} counted", item.name(), self.stat.node(node, item)));
                }
            }
        }
        for (n, &pages) in zones.iter().enumerate() {
            let gauge = self.stat.zone(ZoneId(n as u8), ZoneStat::WritePending);
            if gauge != pages {
                wrong(format!("zone {n}: nr_zone_write_pending is {gauge}, {pages} counted"));
            }
        }
        self.validate_inodes(&owned, violations);
    }

    fn validate_inodes(&self, owned: &BTreeMap<WbId, u64>, violations: &mut Vec<Violation>) {
        let mut wrong = |what: String| violations.push(Violation { place: "dirty inodes", pfn: None, what });
        let state = &self.writeback;
        for id in state.wbs.ids() {
            let wb = &state.wbs[id];
            for (list, on) in [(&wb.b_dirty, On::Dirty), (&wb.b_io, On::Io), (&wb.b_more_io, On::MoreIo)] {
                for at in list.iter(&state.records) {
                    let found = (state.records[at].on(), self.wb_of(FileId(at)));
                    if found != (on, id) {
                        wrong(format!("file {at}, {found:?}, is on {on:?} of {id:?}"));
                    }
                }
            }
            let counted = owned.get(&id).copied().unwrap_or(0);
            if counted != wb.reclaimable {
                wrong(format!("{id:?}: {} dirty pages, {counted} of its files", wb.reclaimable));
            }
            let times: Vec<_> = wb.b_dirty.iter(&state.records).map(|at| state.records[at].dirtied_when()).collect();
            if !times.is_sorted_by(|newer, older| newer >= older) {
                wrong(format!("{id:?}: b_dirty is not in the order of dirtying"));
            }
        }
        for (file, record) in state.records.iter() {
            let nr_dirty = self.pagecache.trees.nr_dirty(file);
            if nr_dirty > 0 && record.on() == On::Nothing {
                wrong(format!("file {file} has {nr_dirty} dirty pages and is on no list"));
            }
        }
        for file in 0..self.pagecache.trees.nr_files() {
            let counted = self.pagecache.trees.nr_dirty(file);
            let mut tagged = 0;
            let mut from = Some(0);
            while let Some(index) = from.and_then(|from| self.pagecache.trees.next_dirty(file, from)) {
                tagged += 1;
                from = index.checked_add(1);
            }
            if tagged != counted {
                wrong(format!("file {file}: {tagged} dirty tags, {counted} counted"));
            }
            if counted > 0 && state.records.get(FileId(file)).is_none() {
                wrong(format!("file {file} has {counted} dirty pages and no record"));
            }
        }
    }
}
