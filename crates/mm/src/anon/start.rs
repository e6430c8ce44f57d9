//! Anonymous memory that was there before anything ran.
//!
//! Abstracted: pages of tmpfs and of all processes are pages of one process that never ends, cannot be killed, and does
//! not look at them again. What no process maps, such as a file of tmpfs, was not accessed since it was written; what one
//! maps has been accessed, and nobody has looked yet.

use units::SpaceId;

use super::{Advice, Touch, TouchStop};
use crate::{Env, Frame, Mm};

impl Mm {
    /// Maps that many pages of the inactive and of the active list; false if there is no memory for them. That many are
    /// mapped by processes: the active ones first, then those that were inactive for longest.
    pub fn start_anon(&mut self, env: &Env, inactive: u32, active: u32, mapped: u32) -> bool {
        let pages = inactive + active;
        if pages == 0 {
            return true;
        }
        let space = self.space_create();
        self.set_oom_score_adj(space, -1000);
        let vpn = self.mmap_anon(space, pages, 1);
        self.madvise(env, space, vpn, pages, Advice::NoHuge);
        let mut touch = Touch::new(space, vpn, pages, true, u64::MAX >> 1);
        if self.touch(env, &mut touch, None) != TouchStop::Done {
            return false;
        }
        for page in 0..pages {
            self.start_page(space, vpn + page, page < mapped, page < active);
        }
        true
    }

    fn start_page(&mut self, space: SpaceId, vpn: u32, mapped: bool, active: bool) {
        let super::Slot::Page(pfn) = self.slot_of(space, vpn) else { panic!("page {vpn} was touched") };
        if !mapped {
            self.frames[pfn].clear(Frame::YOUNG);
        }
        if active {
            self.activate_page(pfn);
        }
    }
}
