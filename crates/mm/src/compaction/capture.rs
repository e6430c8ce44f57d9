//! Page capture: a task that compacts for its allocation takes the block as it merges, before anybody else can.
//!
//! - **Rule**: while the task compacts a zone, the first block of its order that comes free there by its own doing is
//!   its. It is not listed, no watermark is asked, and it counts as no allocation. The compaction has succeeded then,
//!   whatever else it says.
//! - **Source**: `compact_zone_order()`, `struct capture_control` (mm/compaction.c, mm/internal.h), `task_capc()`,
//!   `compaction_capture()` (mm/page_alloc.c), 6.1 and 6.12.
//! - **Since/until**: [`PageCapture`].
//! - **Abstracted**: what interrupts on the task's CPU free while it sleeps is not captured.
//!
//! Which block is taken is in zone/buddy.rs.

use rules::PageCapture;
use units::{Order, Pfn, ZoneId};

use crate::zone::Capture;
use crate::{MigrateType, Mm};

impl Mm {
    /// From now until [`Mm::end_capture`] a block of this order is the task's; `page` is what it has already.
    pub(super) fn begin_capture(&mut self, zone: ZoneId, order: Order, migratetype: MigrateType, page: Option<Pfn>) {
        if self.rules.page_capture != PageCapture::None {
            self.zones[zone.index()].capture = Some(Capture { order, migratetype, page });
        }
    }

    /// The block captured so far, Held; `before` is what there was when the capture began.
    pub(super) fn end_capture(&mut self, zone: ZoneId, before: Option<Pfn>) -> Option<Pfn> {
        let capture = self.zones[zone.index()].capture.take()?;
        if before.is_none() && capture.page.is_some() {
            // It was counted as freed with the others.
            self.account_free(zone, -i64::from(capture.order.pages()));
        }
        capture.page
    }
}
