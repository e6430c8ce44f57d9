//! Charging pages.
//!
//! Rule: a CPU charges 64 pages at once for one group and uses them up page by page; what it still has of another group it
//! gives back first. A charge counts in the group and in all above it, and fails at the first one whose limit it would
//! exceed; then 64 pages become one. A page that is freed is uncharged at once.
//! Source: `try_charge_memcg()`, `consume_stock()`, `refill_stock()`, `drain_all_stock()`, `uncharge_batch()`
//! (mm/memcontrol.c), `page_counter_try_charge()` (mm/page_counter.c); 6.1.
//! Abstracted: whether a page can be charged is found out before it is allocated, not after.

use units::{CpuId, Gfp, MemcgId, Order, Pfn};

use super::{MemcgEvent, Memcgs, ROOT};
use crate::vfs::Need;
use crate::{Env, Mm};

/// Pages charged at once (`MEMCG_CHARGE_BATCH`).
pub(super) const CHARGE_BATCH: u64 = 64;

/// Pages that a CPU has charged for a group and not used (`struct memcg_stock_pcp`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stock {
    pub(super) memcg: MemcgId,
    pub(super) pages: u64,
}

/// A charge that a limit forbids: what the caller reclaims from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Uncharged {
    /// The group whose tasks want to charge.
    pub memcg: MemcgId,
    /// The group at its limit.
    pub over: MemcgId,
    /// Pages that are to be charged.
    pub pages: u64,
    /// What reclaim for it may do.
    pub gfp: Gfp,
    /// Reclaim is tried once (`__GFP_NORETRY`).
    pub noretry: bool,
}

impl Uncharged {
    /// Whether nobody is killed for it, since whoever charges can do with less (`mem_cgroup_oom()`).
    pub fn is_optional(&self) -> bool {
        self.noretry || self.pages > u64::from(Order::COSTLY.pages())
    }
}

impl Memcgs {
    /// Charges pages to a group and all above it, or says which one is at its limit (`page_counter_try_charge()`).
    fn try_count(&mut self, memcg: MemcgId, pages: u64) -> Result<(), MemcgId> {
        let over = self.upwards(memcg).find(|id| self[*id].usage + pages > self[*id].limits.max);
        over.map_or_else(
            || {
                self.count(memcg, pages);
                Ok(())
            },
            Err,
        )
    }

    /// Charges pages whatever the limits (`page_counter_charge()`).
    fn count(&mut self, memcg: MemcgId, pages: u64) {
        let mut at = Some(memcg);
        while let Some(id) = at {
            let group = &mut self[id];
            group.usage += pages;
            group.peak = group.peak.max(group.usage);
            at = group.parent;
        }
    }

    /// Takes a charge back.
    pub(super) fn uncount(&mut self, memcg: MemcgId, pages: u64) {
        let mut at = Some(memcg);
        while let Some(id) = at {
            let group = &mut self[id];
            group.usage = group.usage.checked_sub(pages).expect("no more is uncharged than was charged");
            at = group.parent;
        }
    }

    /// Gives back what a CPU has in stock.
    fn drain_stock(&mut self, cpu: usize) {
        let Stock { memcg, pages } = std::mem::take(&mut self.stocks[cpu]);
        if pages > 0 {
            self.uncount(memcg, pages);
        }
    }

    /// Gives back what all CPUs have in stock of a group and those below it (`drain_all_stock()`).
    pub fn drain_all_stock(&mut self, root: MemcgId) {
        for cpu in 0..self.stocks.len() {
            let memcg = self.stocks[cpu].memcg;
            if self.upwards(memcg).any(|id| id == root) {
                self.drain_stock(cpu);
            }
        }
    }

    /// Pages that may be charged to a group before it is at its limit (`mem_cgroup_margin()`).
    pub fn margin(&self, memcg: MemcgId) -> u64 {
        self[memcg].limits.max.saturating_sub(self[memcg].usage)
    }
}

impl Mm {
    /// Sees to it that the running task's CPU can charge a block to the task's group; `Err` says that a limit forbids it
    /// and has to be dealt with first.
    #[inline]
    pub(crate) fn memcg_reserve(&mut self, env: &Env, memcg: MemcgId, order: Order, gfp: Gfp) -> Result<(), Need> {
        if memcg == ROOT {
            return Ok(());
        }
        let (stock, pages) = (&self.memcg.stocks[env.cpu.index()], u64::from(order.pages()));
        if stock.memcg == memcg && stock.pages >= pages {
            return Ok(());
        }
        self.memcg_try_charge(env.cpu, memcg, pages, gfp).map_err(Need::Charge)
    }

    /// Charges pages into the stock of a CPU.
    ///
    /// # Errors
    /// The group whose limit forbids it.
    pub fn memcg_try_charge(&mut self, cpu: CpuId, memcg: MemcgId, pages: u64, gfp: Gfp) -> Result<(), Uncharged> {
        let batch = CHARGE_BATCH.max(pages);
        self.charge(self.costs.memcg_charge);
        let mut charged = batch;
        if self.memcg.try_count(memcg, batch).is_err() {
            charged = pages;
            let counted = self.memcg.try_count(memcg, pages);
            counted.map_err(|over| Uncharged { memcg, over, pages, gfp, noretry: false })?;
        }
        self.memcg.take_stock(cpu, memcg, charged);
        self.memcg_note_high(memcg, charged);
        Ok(())
    }

    /// Charges pages although a limit forbids it: the task reclaims already, or gives its memory back soon.
    pub fn memcg_force_charge(&mut self, cpu: CpuId, memcg: MemcgId, pages: u64) {
        self.memcg.count(memcg, pages);
        self.memcg.take_stock(cpu, memcg, pages);
    }

    /// A page from the allocator belongs to a group from now on; what [`Mm::memcg_reserve`] saw to is used up.
    #[inline]
    pub(crate) fn memcg_commit(&mut self, env: &Env, memcg: MemcgId, pfn: Pfn) {
        if memcg == ROOT {
            return;
        }
        let pages = u64::from(self.frames[pfn].nr_pages());
        self.memcg.use_stock(env.cpu, memcg, pages);
        self.memcg.pages[pfn.index()] = memcg;
        self.memcg[memcg].own += pages;
    }

    /// A page is freed: its group does not pay for it any more.
    #[inline]
    pub(crate) fn memcg_uncharge(&mut self, pfn: Pfn, order: Order) {
        if !self.memcg.in_use() {
            return;
        }
        let memcg = std::mem::take(&mut self.memcg.pages[pfn.index()]);
        if memcg != ROOT {
            let pages = u64::from(order.pages());
            self.memcg[memcg].own -= pages;
            self.memcg.uncount(memcg, pages);
        }
    }

    /// A page has been moved to another frame.
    pub(crate) fn memcg_migrate(&mut self, old: Pfn, new: Pfn) {
        if self.memcg.in_use() {
            self.memcg.pages[new.index()] = std::mem::take(&mut self.memcg.pages[old.index()]);
        }
    }

    /// A huge page was split: its parts belong to the group that it belonged to.
    pub(crate) fn memcg_split(&mut self, pfn: Pfn, pages: u32) {
        if self.memcg.in_use() {
            let memcg = self.memcg.of_page(pfn);
            self.memcg.pages[pfn.index()..pfn.index() + pages as usize].fill(memcg);
        }
    }

    /// Notes that something happens in a group.
    pub fn memcg_notes(&mut self, memcg: MemcgId, event: MemcgEvent) {
        self.memcg_event(memcg, event);
    }
}

impl Memcgs {
    /// Uses what was charged for a task; pages that are not there, since the CPU is another or nobody saw to it, are charged now.
    pub(super) fn use_stock(&mut self, cpu: CpuId, memcg: MemcgId, pages: u64) {
        let stock = &mut self.stocks[cpu.index()];
        if stock.memcg == memcg && stock.pages >= pages {
            stock.pages -= pages;
        } else {
            self.count(memcg, pages);
        }
    }

    /// Puts what was charged for a task at hand.
    fn take_stock(&mut self, cpu: CpuId, memcg: MemcgId, pages: u64) {
        let cpu = cpu.index();
        if self.stocks[cpu].memcg != memcg {
            self.drain_stock(cpu);
            self.stocks[cpu].memcg = memcg;
        }
        self.stocks[cpu].pages += pages;
    }
}
