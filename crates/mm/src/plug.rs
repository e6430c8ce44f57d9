//! Plugs: bios that go to a device's queue together.
//!
//! Rule: a task with a plug keeps its requests to itself until the plug's end, so that they merge and are sorted before the device sees
//! the first; without one an idle device begins with the first at once.
//! Source: `blk_start_plug()`, `__make_request()` (block/blk-core.c), `read_pages()` (mm/readahead.c), `generic_writepages()`
//! (mm/page-writeback.c); 3.1. `shrink_lruvec()` (mm/vmscan.c), `swap_cluster_readahead()` (mm/swap_state.c); 4.20, 6.12.
//! Since/until: [`Plugs`].
//! Abstracted: a plug ends with the step of the task that opened it, not with its next sleep. What reclaim writes while its task has a plug of its own
//! open, for an allocation within readahead or writeback, is not in that plug. Metadata counts as plugged, but for what reclaim writes.

use rules::Plugs;

use crate::{Bio, Env, Mm};

impl Mm {
    /// Whether a bio is in a plug, and more may follow before its device sees it.
    pub(crate) fn is_plugged(&self, env: &Env, bio: &Bio) -> bool {
        match self.rules.plugs {
            Plugs::SwapReadahead => true,
            Plugs::Reclaim => bio.write || !bio.is_swap(),
            Plugs::Files => !(bio.is_swap() || bio.write && env.task.memalloc),
        }
    }
}

#[cfg(test)]
mod tests {
    use units::{FileId, Pfn};

    use super::*;
    use crate::pagecache::rig::Rig;
    use crate::{BioMemory, BioTarget};

    #[test]
    fn reclaim_and_readahead_from_swap_got_their_plugs_one_after_the_other() {
        let mut rig = Rig::new(1, 1 << 14);
        let (swap, file) = (BioTarget::Swap { pfn: Pfn(7) }, BioTarget::File { file: FileId(1), index: 0 });
        // By a flusher or a reader, and by reclaim: a read and a write of a file, a read and a write of swap.
        let mut plugged = |rules: Plugs| {
            rig.mm.rules.plugs = rules;
            [false, true].map(|memalloc| {
                rig.env.task.memalloc = memalloc;
                [(file, false), (file, true), (swap, false), (swap, true)].map(|(target, write)| {
                    let memory = BioMemory::NONE;
                    let bio = Bio { device: 0, sector: 0, pages: 1, write, sync: false, target, memory };
                    rig.mm.is_plugged(&rig.env, &bio)
                })
            })
        };
        assert_eq!(plugged(Plugs::Files), [[true, true, false, false], [true, false, false, false]]);
        assert_eq!(plugged(Plugs::Reclaim), [[true, true, false, true]; 2]);
        assert_eq!(plugged(Plugs::SwapReadahead), [[true; 4]; 2]);
    }
}
