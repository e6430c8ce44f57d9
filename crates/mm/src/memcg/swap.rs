//! Swap slots of groups.
//!
//! Rule: a slot is charged to the group of the page that gets it, and to all groups above, unless one of them is at
//! `memory.swap.max`: then the page gets none. It is uncharged when the slot is free. A page that is read back is charged
//! to the group of its slot.
//! Source: `__mem_cgroup_try_charge_swap()`, `__mem_cgroup_uncharge_swap()`, `mem_cgroup_get_nr_swap_pages()`,
//! `mem_cgroup_swapin_charge_page()` (mm/memcontrol.c); 6.1.

use units::{MemcgId, Pfn, table};

use super::{MemcgEvent, ROOT};
use crate::Mm;
use crate::swap::SwapEntry;

impl Mm {
    /// Whether a page's group may have one more slot; if not, that is noted.
    pub(crate) fn memcg_may_swap(&mut self, pfn: Pfn) -> bool {
        let memcg = self.memcg.of_page(pfn);
        if memcg == ROOT {
            return true;
        }
        let full = self.memcg.upwards(memcg).find(|id| self.memcg[*id].swap >= self.memcg[*id].limits.swap_max);
        if let Some(over) = full {
            self.memcg_event(over, MemcgEvent::SwapMax);
            self.memcg_event(over, MemcgEvent::SwapFail);
        }
        full.is_none()
    }

    /// A page has got a slot.
    #[inline]
    pub(crate) fn memcg_charge_swap(&mut self, pfn: Pfn, entry: SwapEntry) {
        let memcg = self.memcg.of_page(pfn);
        if memcg != ROOT {
            let slot = entry.0 as usize;
            if slot >= self.memcg.slots.len() {
                table::grow(&mut self.memcg.slots, slot + 1, ROOT);
            }
            self.memcg.slots[slot] = memcg;
            self.memcg[memcg].own_swap += 1;
            self.count_swap(memcg, 1);
        }
    }

    /// A slot is free.
    #[inline]
    pub(crate) fn memcg_uncharge_swap(&mut self, entry: SwapEntry) {
        let memcg = self.memcg.slots.get_mut(entry.0 as usize).map_or(ROOT, std::mem::take);
        if memcg != ROOT {
            self.memcg[memcg].own_swap -= 1;
            self.count_swap(memcg, -1);
        }
    }

    fn count_swap(&mut self, memcg: MemcgId, pages: i64) {
        let mut at = Some(memcg);
        while let Some(id) = at {
            let group = &mut self.memcg[id];
            group.swap = group.swap.checked_add_signed(pages).expect("no more slots are given up than were charged");
            at = group.parent;
        }
    }

    /// Group that a slot is charged to.
    #[inline]
    pub(crate) fn memcg_of_slot(&self, entry: SwapEntry) -> MemcgId {
        self.memcg.slots.get(entry.0 as usize).copied().unwrap_or(ROOT)
    }

    /// Slots that a group may still get (`mem_cgroup_get_nr_swap_pages()`).
    #[inline]
    pub(crate) fn memcg_swap_pages(&self, memcg: MemcgId) -> u64 {
        let free = self.swap_free_pages();
        if memcg == ROOT {
            return free;
        }
        let left = |id: MemcgId| self.memcg[id].limits.swap_max.saturating_sub(self.memcg[id].swap);
        self.memcg.upwards(memcg).map(left).fold(free, u64::min)
    }
}
