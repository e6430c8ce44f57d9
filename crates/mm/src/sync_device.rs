//! Devices whose bios end before their submission returns.
//!
//! Rule: the driver copies in the submitter's context and ends the bio at once, so that nobody ever waits for a page of such a
//! device. A page that goes to swap there is free in the same pass. A page that comes from swap passes the swap cache by: it
//! is read alone, and its slot is free.
//! Source: `brd_submit_bio()`, `brd_rw_page()` (drivers/block/brd.c), `bdev_read_page()`, `bdev_write_page()` (block/bdev.c),
//! `SWP_SYNCHRONOUS_IO` in `do_swap_page()` (mm/memory.c), `pageout()` (mm/vmscan.c); 6.1.
//! Since/until: the swap cache is passed by since 0bcac06f27d7 (4.15).

use units::Nanos;

use crate::Mm;

/// What a synchronous device costs its submitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncDevice {
    /// Each bio.
    pub bio: Nanos,
    /// Each page of it.
    pub page: Nanos,
}

impl Mm {
    /// Says that the bios of a device end at once.
    pub fn set_device_synchronous(&mut self, device: u16, costs: SyncDevice) {
        let index = usize::from(device);
        if self.sync_devices.len() <= index {
            self.sync_devices.resize(index + 1, None);
        }
        self.sync_devices[index] = Some(costs);
    }

    /// Whether the bios of a device end at once.
    #[inline]
    pub(crate) fn is_synchronous(&self, device: u16) -> bool {
        self.sync_devices.get(usize::from(device)).is_some_and(Option::is_some)
    }

    /// Charges a bio of a synchronous device to its submitter.
    #[inline]
    pub(crate) fn charge_sync_bio(&mut self, device: u16, pages: u32) {
        let costs = self.sync_devices[usize::from(device)].expect("the device is synchronous");
        self.charge(costs.bio.0 + costs.page.0 * u64::from(pages));
    }
}
