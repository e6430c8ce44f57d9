//! Anonymous memory that was there before anything ran.
//!
//! Abstracted: pages of tmpfs and of all processes are pages of one process that never ends, cannot be killed, and does
//! not look at them again. What no process maps, such as a file of tmpfs, was not accessed since it was written; what one
//! maps has been accessed, once, and nobody has looked yet.

use units::{Pfn, SpaceId, ZoneId};

use super::fault::GFP_PAGE;
use super::pgtable::GFP_PGTABLE;
use super::{Advice, Region, Slot, Touch, TouchStop};
use crate::stat::ZoneStat;
use crate::zone::StartError;
use crate::{Env, Frame, Mm};

/// Anonymous memory of a zone that is there from the start, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StartAnon {
    /// On the active list.
    pub active: u32,
    /// On the inactive list.
    pub inactive: u32,
    /// How many of these are mapped by processes: the active ones first, then those that were inactive for longest.
    pub mapped: u32,
    /// Locked in memory.
    pub unevictable: u32,
}

impl Mm {
    /// Makes that memory, and its page tables, in that zone.
    ///
    /// # Errors
    /// The zone has no room for it.
    pub fn start_anon(&mut self, env: &Env, zone: ZoneId, start: &StartAnon) -> Result<(), StartError> {
        let pages = start.active + start.inactive + start.unevictable;
        if pages == 0 {
            return Ok(());
        }
        let space = self.space_create();
        self.set_oom_score_adj(space, -1000);
        let vpn = self.mmap_anon(space, pages, 1);
        self.madvise(env, space, vpn, pages, Advice::NoHuge);
        if !(vpn..vpn + pages).all(|vpn| self.touch_in_zone(env, zone, space, vpn)) {
            return Err(self.start_error(zone, "no memory for what was anonymous or locked".to_string()));
        }
        let evictable = start.active + start.inactive;
        for page in 0..evictable {
            self.start_page(env, space, vpn + page, page < start.mapped, page < start.active);
        }
        (evictable..pages).for_each(|page| self.mlock_page(env, space, vpn + page));
        Ok(())
    }

    /// Writes to a page that is to lie in that zone; false if there is no room for it.
    fn touch_in_zone(&mut self, env: &Env, zone: ZoneId, space: SpaceId, vpn: u32) -> bool {
        while let Some(level) = self.missing_level(space, vpn) {
            let Some(pfn) = self.alloc_in_zone(env, zone, GFP_PGTABLE) else { return false };
            self.install_upper(space, vpn, level, pfn);
        }
        if self.spaces[space].tables.region(vpn) == Region::None {
            let Some(pfn) = self.alloc_in_zone(env, zone, GFP_PGTABLE) else { return false };
            self.install_leaf(space, vpn, pfn);
        }
        let Some(pfn) = self.alloc_in_zone(env, zone, GFP_PAGE) else { return false };
        let mut touch = Touch::asking(space, vpn, GFP_PAGE);
        self.touch(env, &mut touch, Some(pfn)) == TouchStop::Done
    }

    fn start_page(&mut self, env: &Env, space: SpaceId, vpn: u32, mapped: bool, active: bool) {
        let Slot::Page(pfn) = self.slot_of(space, vpn) else { panic!("page {vpn} was touched") };
        if !mapped {
            self.frames[pfn].clear(Frame::YOUNG);
        }
        if active {
            self.activate_page(pfn);
        } else if self.frames[pfn].has(Frame::ACTIVE) {
            self.put_inactive(env, pfn, 0);
        }
    }

    /// Locks a page in memory (`mlock_folio()`).
    fn mlock_page(&mut self, env: &Env, space: SpaceId, vpn: u32) {
        let Slot::Page(pfn) = self.slot_of(space, vpn) else { panic!("page {vpn} was touched") };
        self.put_inactive(env, pfn, Frame::UNEVICTABLE);
        self.stat.zone_add(self.zone_of(pfn), ZoneStat::Mlock, 1);
    }

    /// Puts a page that was touched, and with that on a list, on the one of its kind that is not active.
    fn put_inactive(&mut self, env: &Env, pfn: Pfn, flags: u32) {
        let isolated = self.lru_isolate(pfn);
        debug_assert!(isolated, "it is on a list since it was touched");
        self.frames[pfn].clear(Frame::ACTIVE);
        self.frames[pfn].set(flags);
        self.lru_putback(env, pfn);
    }
}
