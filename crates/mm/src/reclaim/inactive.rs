//! Reclaiming a batch from an inactive list.
//!
//! Rule: take up to 32 pages from the tail, free what can be freed, put the rest back. If every page of a batch was
//! dirty and not queued for writing, the flushers sleep while they are needed: wake them.
//! Source: `shrink_inactive_list()` (mm/vmscan.c, 4.20; 6.12).

use units::NodeId;

use super::ScanControl;
use crate::stat::VmEvent;
use crate::{Effect, Env, LruList, Mm, WakeFlusher};

/// What came of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct InactiveBatch {
    /// Base pages freed.
    pub reclaimed: u64,
    /// Pages of a split huge page at the tail of the list, which belong to this batch and are still to be handled.
    pub split: u32,
}

impl Mm {
    /// Reclaims up to `nr_to_scan` pages of an inactive list. `rest_of_split`: these are the pages of a huge page that an
    /// earlier batch has taken and counted already.
    pub(super) fn shrink_inactive_list(
        &mut self,
        env: &Env,
        node: NodeId,
        list: LruList,
        nr_to_scan: u32,
        rest_of_split: bool,
        sc: &mut ScanControl,
    ) -> InactiveBatch {
        let isolated = self.isolate_lru_pages(node, list, nr_to_scan, sc);
        let file = list.is_file();
        let (scanned, taken) = if rest_of_split { (0, 0) } else { (isolated.scanned, isolated.taken) };
        self.note_recent(node, file, taken, 0);
        self.stat.count(if env.task.kswapd { VmEvent::PgscanKswapd } else { VmEvent::PgscanDirect }, scanned);
        self.stat.count(if file { VmEvent::PgscanFile } else { VmEvent::PgscanAnon }, scanned);
        if isolated.pages.is_empty() {
            return InactiveBatch::default();
        }
        let stat = self.shrink_page_list(env, node, &isolated.pages, sc);
        self.stat.count(if env.task.kswapd { VmEvent::PgstealKswapd } else { VmEvent::PgstealDirect }, stat.reclaimed);
        self.stat.count(if file { VmEvent::PgstealFile } else { VmEvent::PgstealAnon }, stat.reclaimed);
        self.note_cost(node, file, stat.pageout, scanned.saturating_sub(stat.reclaimed));
        if stat.unqueued_dirty == isolated.taken {
            self.effects.push(Effect::WakeFlushers(WakeFlusher::Vmscan));
        }
        sc.nr.dirty += stat.dirty;
        sc.nr.congested += stat.congested;
        sc.nr.unqueued_dirty += stat.unqueued_dirty;
        sc.nr.writeback += stat.writeback;
        sc.nr.immediate += stat.immediate;
        sc.nr.taken += taken;
        if file {
            sc.nr.file_taken += taken;
        }
        InactiveBatch { reclaimed: stat.reclaimed, split: stat.split }
    }
}
