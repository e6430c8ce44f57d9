//! What a window of readahead may have at most, whatever its device allows.
//!
//! Source: `max_sane_readahead()`, mm/readahead.c (2.6.39, 3.1 and 3.19).
//! Since/until: [`ReadaheadLimit`].

use rules::ReadaheadLimit;
use units::{Bytes, NodeId};

use super::readahead::WindowRules;
use crate::stat::NodeStat;
use crate::{Env, Mm};

impl Mm {
    /// What this kernel does about windows of a task now.
    pub(super) fn window_rules(&self, env: &Env) -> WindowRules {
        WindowRules::new(&self.rules, self.readahead_limit(env.node))
    }

    /// In pages, for a task on this node.
    fn readahead_limit(&self, node: NodeId) -> u32 {
        match self.rules.readahead_limit {
            ReadaheadLimit::HalfOfNode => {
                let free: u64 = self.zones.iter().filter(|zone| zone.node == node).map(|zone| zone.free_pages).sum();
                u32::try_from((self.stat.node(node, NodeStat::InactiveFile) + free) / 2).unwrap_or(u32::MAX)
            }
            ReadaheadLimit::TwoMib => Bytes::mib(2).pages_up().0 as u32,
            ReadaheadLimit::Device => u32::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pagecache::Readahead;
    use crate::pagecache::rig::Rig;

    /// The window that is read around a missing page on a device with 16 MiB of readahead.
    fn window(rig: &Rig) -> u32 {
        Readahead::new(4096).around(rig.mm.window_rules(&rig.env), 10_000).size
    }

    fn free(rig: &Rig) -> u64 {
        rig.mm.zones.iter().map(|zone| zone.free_pages).sum()
    }

    #[test]
    fn half_of_what_can_be_had_until_3_14_and_2_mib_until_4_3() {
        let mut rig = Rig::new(1, 1 << 12);
        rig.mm.rules.readahead_limit = ReadaheadLimit::Device;
        assert_eq!(window(&rig), 4096);
        rig.mm.rules.readahead_limit = ReadaheadLimit::TwoMib;
        assert_eq!(window(&rig), 512);
        rig.mm.rules.readahead_limit = ReadaheadLimit::HalfOfNode;
        assert_eq!(u64::from(window(&rig)), free(&rig) / 2, "all memory is free");
        let file = rig.create();
        (0..1000).for_each(|index| _ = rig.write(file, index));
        rig.mm.lru_add_drain(&rig.env.clone());
        assert_eq!(u64::from(window(&rig)), (free(&rig) + 1000) / 2);
    }
}
