//! Whole-structure check of pipes.

use std::collections::{BTreeMap, BTreeSet};

use units::MemcgId;

use super::{Pipe, PipeEnd, PipeId};
use crate::memcg::{KernelPage, ROOT};
use crate::{Kind, Mm, Violation};

impl Mm {
    /// Checks that a pipe has a user, that each of its pages is the kernel's and in one pipe only, and that groups pay for them.
    pub(crate) fn validate_pipes(&self, violations: &mut Vec<Violation>) {
        let mut seen = BTreeSet::new();
        let mut groups: BTreeMap<MemcgId, u64> = BTreeMap::new();
        for (id, pipe) in &self.pipes.list {
            if let Some(what) = unsound(*id, pipe) {
                violations.push(Violation { place: "pipe", pfn: None, what });
            }
            for pfn in pipe.ring.pages() {
                let frame = &self.frames[pfn];
                if !seen.insert(pfn) || frame.kind() != Kind::Kernel || frame.order().0 != 0 {
                    let what = format!("{id:?} has it, which is {frame:?}");
                    violations.push(Violation { place: "pipe", pfn: Some(pfn), what });
                }
                *groups.entry(self.memcg.of_page(pfn)).or_default() += 1;
            }
        }
        for id in self.memcg.ids().filter(|id| *id != ROOT) {
            let (charged, counted) =
                (self.memcg_own_kernel_pages(id, KernelPage::Pipe), groups.get(&id).copied().unwrap_or(0));
            if charged != counted {
                let what = format!("{id:?} pays for {charged} pages, counted {counted}");
                violations.push(Violation { place: "pipe", pfn: None, what });
            }
        }
    }
}

/// What is wrong with a pipe, if anything is.
fn unsound(id: PipeId, pipe: &Pipe) -> Option<String> {
    let open = pipe.users.iter().filter(|users| **users > 0).count();
    let sound = pipe.ring.is_sound() && open > 0 && pipe.waiting_writers <= pipe.users[PipeEnd::Write as usize];
    (!sound).then(|| format!("{id:?} is {pipe:?}"))
}
