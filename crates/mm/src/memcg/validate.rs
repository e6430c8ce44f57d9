//! Recount of charges.

use std::collections::BTreeMap;

use units::{MemcgId, PAGE_SIZE, Pfn};

use super::ROOT;
use crate::swap::SwapEntry;
use crate::{Frame, Kind, Mm, Violation};

impl Mm {
    /// Checks that every group's usage is what its pages, those of the groups below it and the stocks of the CPUs come to, and
    /// likewise its slots.
    pub(crate) fn validate_memcg(&self, violations: &mut Vec<Violation>) {
        let mut report = |pfn: Option<Pfn>, what: String| violations.push(Violation { place: "memcg", pfn, what });
        if !self.memcg.in_use() {
            return;
        }
        let groups = self.memcg.list.len();
        let (mut charged, mut slots) = (vec![0; groups], vec![0; groups]);
        let objects = self.recount_objects();
        let mut dirty = vec![(0, 0); groups];
        for (at, memcg) in self.memcg.pages.iter().enumerate().filter(|(_, memcg)| **memcg != ROOT) {
            let frame = &self.frames[Pfn(at as u32)];
            let pages = |counts: bool| if counts { u64::from(frame.nr_pages()) } else { 0 };
            dirty[memcg.index()].0 += pages(frame.kind() == Kind::File && frame.has(Frame::DIRTY));
            dirty[memcg.index()].1 += pages(frame.has(Frame::WRITEBACK));
            match frame.kind() {
                Kind::Anon | Kind::File | Kind::Held | Kind::PageTable | Kind::Kernel => {
                    charged[memcg.index()] += u64::from(frame.nr_pages())
                }
                kind => report(Some(Pfn(at as u32)), format!("{kind:?} is charged to {memcg:?}")),
            }
        }
        for (at, memcg) in self.memcg.slots.iter().enumerate().filter(|(_, memcg)| **memcg != ROOT) {
            if self.swap.is_taken(SwapEntry(at as u32)) {
                slots[memcg.index()] += 1;
            } else {
                report(None, format!("slot {at} is free and charged to {memcg:?}"));
            }
        }
        for id in self.memcg.ids().skip(1) {
            let group = &self.memcg[id];
            let sum = |of: &[u64]| self.memcg.subtree(id).iter().map(|(below, _)| of[below.index()]).sum::<u64>();
            let stocked: u64 = self.memcg.stocks.iter().filter(|s| self.below(id, s.memcg)).map(|s| s.pages).sum();
            let object_pages = self.memcg_object_pages(id);
            if group.usage != sum(&charged) + object_pages + stocked || group.own != charged[id.index()] {
                let (usage, own) = (group.usage, group.own);
                let found = (sum(&charged), object_pages, stocked, charged[id.index()]);
                report(
                    None,
                    format!("{id:?} uses {usage}, {own} itself; pages, of objects, stock, own pages are {found:?}"),
                );
            }
            let bytes = objects.get(&id).copied().unwrap_or_default();
            let pages = group.kernel.object_pages;
            let own: u64 = self.nodes.iter().flat_map(|node| node.lruvecs[id.index()].slab_bytes).sum();
            if own != bytes || pages < bytes.div_ceil(PAGE_SIZE) {
                report(None, format!("{id:?} has {bytes} B of objects; {own} are counted, {pages} pages charged"));
            }
            let found = dirty[id.index()];
            if (group.dirty.dirty, group.dirty.writeback) != found {
                report(None, format!("{id:?} has {:?}, recount {found:?}", group.dirty));
            }
            if group.swap != sum(&slots) || group.own_swap != slots[id.index()] {
                report(None, format!("{id:?} has {} slots, recount {}", group.swap, sum(&slots)));
            }
        }
        for node in &self.nodes {
            if node.lruvecs.len() != groups || !node.fifo.is_sound(groups) {
                report(None, format!("{:?}: the LRU of groups is not sound", node.id));
            }
        }
    }

    /// Bytes of the slab objects that say they belong to a group.
    fn recount_objects(&self) -> BTreeMap<MemcgId, u64> {
        let mut bytes = BTreeMap::new();
        for cache in self.slabs.ids() {
            for memcg in self.slabs.owners(cache) {
                assert!(self.slabs.has_accounted(cache), "others have no owner");
                *bytes.entry(memcg).or_default() += self.charged_size(cache);
            }
        }
        bytes
    }

    fn below(&self, root: MemcgId, memcg: MemcgId) -> bool {
        self.memcg.upwards(memcg).any(|id| id == root)
    }
}
