//! Check of SLUB's lists.

use super::super::table::Table;
use super::super::{NONE, Place};
use super::Lists;

impl Lists {
    /// Says what is wrong: every slab is on the list that it says, and no list has others.
    pub(in super::super) fn check(&self, slabs: &Table, mut wrong: impl FnMut(String)) {
        let at = |place| slabs.iter().filter(|(_, s)| s.place == place).count();
        let mut listed = 0;
        for (node, list) in self.nodes.iter().enumerate() {
            listed += list.check(slabs, node, Place::Node, &mut wrong);
        }
        let mut kept = 0;
        for cpu in &self.cpus {
            let mut number = cpu.partial;
            while number != NONE && kept <= at(Place::CpuPartial) {
                kept += 1;
                number = slabs[number].next;
            }
        }
        let current = self.cpus.iter().filter(|c| c.current != NONE).count();
        let found = [at(Place::Node), at(Place::CpuPartial), at(Place::Cpu), at(Place::Empty)];
        if found != [listed, kept, current, 0] {
            wrong(format!("places {found:?} of slabs, on lists [{listed}, {kept}, {current}, 0]"));
        }
    }
}
