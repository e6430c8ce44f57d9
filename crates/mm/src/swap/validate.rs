//! Recounts swap slots against the frames and the counters.

use units::{NodeId, Pfn};

use super::SwapEntry;
use super::kept::{Kept, PoolId};
use crate::stat::{NodeStat, ZoneStat};
use crate::zsmalloc::ZsPool;
use crate::{Frame, Kind, Mm, Violation};

impl Mm {
    /// Checks every device: its maps agree, each cached slot leads to a frame that leads back, and the counters equal a
    /// recount.
    pub(crate) fn validate_swap(&self, violations: &mut Vec<Violation>) {
        let mut report = |pfn: Option<Pfn>, what: String| violations.push(Violation { place: "swap", pfn, what });
        let (mut free, mut mapped) = (0, 0);
        for device in &self.swap.devices {
            if device.recount() != Some(device.used_pages()) {
                report(None, format!("{} slots in use, recount {:?}", device.used_pages(), device.recount()));
            }
            free += u64::from(device.usable_pages() - device.used_pages());
            for offset in 1..device.slots() {
                let entry = SwapEntry(device.base + offset);
                mapped += u64::from(self.swap.is_used(entry));
                let holds = device.state(offset) & super::HAS_CACHE != 0;
                match self.swap.cached(entry) {
                    Some(pfn) if !holds || self.swap_entry_of(pfn) != Some(entry) => {
                        report(Some(pfn), format!("{entry:?} takes it for its page"));
                    }
                    None if holds => report(None, format!("{entry:?} is held by no page")),
                    _ => {}
                }
            }
        }
        if let Some((listed, found)) = self.swap.recount_shadow_nodes()
            && listed != found
        {
            report(None, format!("{listed} nodes with only shadows are listed, recount {found}"));
        }
        if free != self.swap.free_pages {
            report(None, format!("{} free slots, recount {free}", self.swap.free_pages));
        }
        let swapped: u64 = self.spaces.live().map(|id| self.spaces[id].swap_pages()).sum();
        if swapped != mapped {
            report(None, format!("spaces have {swapped} pages on swap, {mapped} slots are referred to"));
        }
        self.validate_kept(violations);
        let mut report = |pfn: Option<Pfn>, what: String| violations.push(Violation { place: "swap", pfn, what });
        let mut cached = vec![0; self.nodes.len()];
        for pfn in (0..self.frames.len() as u32).map(Pfn) {
            let frame = &self.frames[pfn];
            if frame.kind() == Kind::Anon && frame.has(Frame::SWAPCACHE) {
                cached[self.node_of(pfn).index()] += 1;
            }
        }
        for (node, found) in cached.into_iter().enumerate() {
            let counted = self.stat.node(NodeId(node as u8), NodeStat::SwapCached);
            if counted != found {
                report(None, format!("node {node}: nr_swapcached is {counted}, recount {found}"));
            }
        }
    }

    /// Checks that only slots in use are kept in memory, and that the pools hold what slots keep in them.
    fn validate_kept(&self, violations: &mut Vec<Violation>) {
        let mut report = |pfn: Option<Pfn>, what: String| violations.push(Violation { place: "swap", pfn, what });
        let mut kept = vec![0; self.swap.devices.len() + 1];
        for device in &self.swap.devices {
            for entry in (0..device.slots()).map(|offset| SwapEntry(device.base + offset)) {
                let what = self.swap.kept(entry);
                if what != Kept::Nothing && !self.swap.is_taken(entry) {
                    report(None, format!("{entry:?} is free and kept: {what:?}"));
                }
                match what {
                    Kept::Compressed { pool: PoolId::Zswap, .. } => kept[0] += 1,
                    Kept::Compressed { pool: PoolId::Zram(device), .. } => kept[usize::from(device) + 1] += 1,
                    Kept::Nothing | Kept::Word(_) => {}
                }
            }
        }
        let zrams = self.swap.devices.iter().map(|device| device.zram.as_ref().map(|zram| &zram.pool));
        let pools: Vec<Option<&ZsPool>> = std::iter::once(Some(self.swap.zswap_pool())).chain(zrams).collect();
        let mut pages = 0;
        for (pool, kept) in pools.iter().zip(kept) {
            let objects = pool.map_or(0, |pool| pool.objects());
            if objects != kept {
                report(None, format!("a pool has {objects} objects, slots keep {kept} there"));
            }
            for pfn in pool.iter().flat_map(|pool| pool.frames()) {
                pages += 1;
                if self.frames[pfn].kind() != Kind::Kernel {
                    report(Some(pfn), format!("a page of a zspage is {:?}", self.frames[pfn].kind()));
                }
            }
        }
        let counted = self.stat.zone_sum(ZoneStat::Zspages);
        if counted != pages {
            report(None, format!("nr_zspages is {counted}, recount {pages}"));
        }
        pools.into_iter().flatten().for_each(|pool| pool.validate(violations));
    }
}
