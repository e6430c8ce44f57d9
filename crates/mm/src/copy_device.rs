//! Devices that copy: RAM disks and persistent memory.
//!
//! Rule: the driver copies in the context of whoever hands it a bio and ends the bio at once. A write to such a device thus
//! takes the memory of a bio for a moment only. Where nothing lies between (no device mapper, no throttle), nobody ever waits
//! for a page: what goes to swap is free in the same pass, and what comes from swap passes the swap cache by: it is read alone,
//! and its slot is free.
//! Source: `brd_submit_bio()`, `brd_rw_page()` (drivers/block/brd.c), `bdev_read_page()`, `bdev_write_page()` (block/bdev.c),
//! `SWP_SYNCHRONOUS_IO` in `do_swap_page()` (mm/memory.c), `pageout()` (mm/vmscan.c); 6.1.
//! Since/until: the swap cache is passed by since 0bcac06f27d7 (4.15).
//! Abstracted: writes of files to a synchronous device end by an event of the device, not in the call.

use units::Nanos;

use crate::Mm;

/// What a synchronous device costs its submitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncCosts {
    /// Each bio.
    pub bio: Nanos,
    /// Each page of it.
    pub page: Nanos,
}

/// When the bios of a device end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BioEnd {
    /// By an interrupt: a bio holds its memory until then.
    #[default]
    Interrupt,
    /// With the copy, which something in front of the device may put off.
    Copy,
    /// Before the submission returns; the submitter pays.
    Synchronous(SyncCosts),
}

impl Mm {
    /// Says when the bios of a device end.
    pub fn set_bio_end(&mut self, device: u16, end: BioEnd) {
        let index = usize::from(device);
        if self.bio_ends.len() <= index {
            self.bio_ends.resize(index + 1, BioEnd::default());
        }
        self.bio_ends[index] = end;
    }

    fn bio_end(&self, device: u16) -> BioEnd {
        self.bio_ends.get(usize::from(device)).copied().unwrap_or_default()
    }

    /// Whether a bio of a device holds memory while it is under way.
    pub(crate) fn bio_holds_memory(&self, device: u16) -> bool {
        self.bio_end(device) == BioEnd::Interrupt
    }

    /// Whether the bios of a device end before their submission returns.
    #[inline]
    pub(crate) fn is_synchronous(&self, device: u16) -> bool {
        matches!(self.bio_end(device), BioEnd::Synchronous(_))
    }

    /// Charges a bio of a synchronous device to its submitter.
    #[inline]
    pub(crate) fn charge_sync_bio(&mut self, device: u16, pages: u32) {
        let BioEnd::Synchronous(costs) = self.bio_end(device) else { unreachable!("the device is synchronous") };
        self.charge(costs.bio.0 + costs.page.0 * u64::from(pages));
    }
}
