//! The active and inactive lists of several memory cgroups against a slow model: plain vectors.

use proptest::prelude::*;
use rules::Rules;
use units::{Gfp, MemcgId, Order, Pfn};

use super::ScanControl;
use super::fixture::{Machine, NODE};
use crate::memcg::ROOT;
use crate::{Frame, Kind, LruList, LruvecId, ZoneKind};

const GROUPS: usize = 3;

/// What happens to the page cache of one of the groups.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// Its task reads a new page.
    Add,
    /// Somebody reads one of its pages again.
    Access(usize),
    /// Reclaim scans so many pages of its inactive list.
    Shrink(u32),
    /// The same of its active list.
    Deactivate(u32),
}

/// The lists of a group, newest first; a page with whether it was referenced.
#[derive(Default)]
struct Model {
    inactive: Vec<(Pfn, bool)>,
    active: Vec<(Pfn, bool)>,
}

impl Model {
    /// The second access of an inactive page makes it active and forgets both; an active one is referenced at most.
    fn access(&mut self, at: usize) -> Option<Pfn> {
        let all = self.inactive.len() + self.active.len();
        let at = at.checked_rem(all)?;
        if let Some((pfn, referenced)) = self.inactive.get(at).copied() {
            if referenced {
                self.inactive.remove(at);
                self.active.insert(0, (pfn, false));
            } else {
                self.inactive[at].1 = true;
            }
            return Some(pfn);
        }
        let page = &mut self.active[at - self.inactive.len()];
        page.1 = true;
        Some(page.0)
    }

    /// Clean pages that nobody maps go, referenced or not; the oldest first.
    fn shrink(&mut self, pages: u32) {
        self.inactive.truncate(self.inactive.len().saturating_sub(pages as usize));
    }

    /// Pages of files leave the active list, the oldest first, whatever was read.
    fn deactivate(&mut self, pages: u32) {
        for _ in 0..pages {
            let Some(page) = self.active.pop() else { return };
            self.inactive.insert(0, page);
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Add),
        4 => any::<usize>().prop_map(Op::Access),
        1 => (1_u32..5).prop_map(Op::Shrink),
        1 => (1_u32..5).prop_map(Op::Deactivate),
    ]
}

proptest! {
    /// Whatever one group does, its lists are those of the model, and the others' stay as they are.
    #[test]
    fn each_group_has_lists_of_its_own(ops in prop::collection::vec((0..GROUPS, op()), 1..120)) {
        let mut m = Machine::new(Rules::newest());
        let groups = [ROOT, m.mm.memcg_create(ROOT, "a").unwrap(), m.mm.memcg_create(MemcgId(1), "a/b").unwrap()];
        let mut models: [Model; GROUPS] = Default::default();
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        for (group, op) in ops {
            let (lru, model) = (LruvecId { node: NODE, part: groups[group].0 }, &mut models[group]);
            m.env.task.memcg = groups[group];
            let env = m.env;
            match op {
                Op::Add => {
                    let pfn = m.add_page(Kind::File, 0, Gfp::HIGHUSER_MOVABLE).expect("memory is plentiful");
                    model.inactive.insert(0, (pfn, false));
                }
                Op::Access(at) => {
                    if let Some(pfn) = model.access(at) {
                        m.mm.mark_page_accessed(&env, pfn);
                    }
                }
                Op::Shrink(pages) => {
                    model.shrink(pages);
                    m.mm.shrink_inactive_list(&env, lru, LruList::InactiveFile, pages, &mut sc);
                }
                Op::Deactivate(pages) => {
                    model.deactivate(pages);
                    m.mm.shrink_active_list(&m.env, lru, LruList::ActiveFile, pages, &sc);
                }
            }
            for (group, model) in groups.iter().zip(&models) {
                for (list, expected) in [(LruList::InactiveFile, &model.inactive), (LruList::ActiveFile, &model.active)] {
                    let lists = &m.mm.lruvec(LruvecId { node: NODE, part: group.0 }).lists;
                    let found = lists[list as usize].iter(&m.mm.frames);
                    let found: Vec<_> = found.map(|pfn| (pfn, m.mm.frames[pfn].has(Frame::REFERENCED))).collect();
                    prop_assert_eq!(&found, expected, "{:?} of {:?} after {:?}", list, group, op);
                }
            }
            let charged: usize = models[1..].iter().map(|model| model.inactive.len() + model.active.len()).sum();
            let own: u64 = m.mm.memcg_list_pages(MemcgId(1), LruList::InactiveFile)
                + m.mm.memcg_list_pages(MemcgId(1), LruList::ActiveFile);
            prop_assert_eq!(own, charged as u64);
        }
        m.check();
    }
}
