//! zram: a swap device that is compressed memory.
//!
//! Rule: a page that is written is compressed in its writer's context and takes a place in the device's pool; one that hardly
//! compresses takes a page. The write fails if there is no memory for it, and the page stays dirty. What was read stays until
//! its slot is free.
//! Source: `zram_submit_bio()`, `zram_write_page()`, `zram_read_page()`, `zram_slot_free_notify()` (drivers/block/zram/zram_drv.c, 6.12);
//! `swap_writepage_bdev_sync()`, `swap_read_folio_bdev_sync()` (mm/page_io.c).
//! Since/until: [`ZramIo`]; else as in 6.12. Before 4.15 pages of zram come through the swap cache; here they pass it by (see copy_device.rs).
//! Omitted: the memory limit, writeback to a backing device, recompression, the table of slots (16 bytes a page of the device).

use rules::{Compressor, ZramIo};
use units::{Content, Gfp};

use super::kept::{Keeper, Kept, PoolId};
use super::{SwapDevice, SwapEntry, SwapSpec};
use crate::stat::VmEvent;
use crate::zsmalloc::ZsPool;
use crate::{Env, Mm};

/// What zram asks for: a page may lie anywhere and be moved (`zs_malloc()` in `zram_write_page()`, after its attempt without reclaim).
const GFP: Gfp = Gfp(Gfp::NOIO.0 | Gfp::HIGHMEM.0 | Gfp::MOVABLE.0);

/// What a swap device is that is a zram.
#[derive(Clone, Debug)]
pub struct Zram {
    pub(super) compressor: Compressor,
    /// Where its pages are.
    pub pool: ZsPool,
}

impl super::Swap {
    /// Starts to use a zram of so many pages, header included. `device` is a number that no disk has.
    pub fn add_zram(&mut self, device: u16, pages: u32, priority: i16, compressor: Compressor) {
        self.add_device(&SwapSpec { device, start_sector: 0, pages, priority, rotational: false });
        let zram = Zram { compressor, pool: ZsPool::default() };
        if let Some(last) = self.devices.last_mut() {
            last.zram = Some(Box::new(zram));
        }
    }

    /// Whether a slot is on a zram.
    pub(crate) fn is_zram(&self, entry: SwapEntry) -> bool {
        self.devices[self.locate(entry).0].zram.is_some()
    }

    /// The devices that are zrams.
    pub fn zrams(&self) -> impl Iterator<Item = (&SwapDevice, &Zram)> {
        self.devices.iter().filter_map(|device| Some((device, &**device.zram.as_ref()?)))
    }
}

impl Mm {
    /// Writes a page to a zram; false if there is no memory.
    pub(super) fn zram_write(&mut self, env: &Env, entry: SwapEntry) -> bool {
        self.count_zram_io(true);
        let Content::Bytes(bytes) = self.swap.content(entry) else {
            self.keep_word(entry, Keeper::Zram);
            return true;
        };
        let (device, _) = self.swap.locate(entry);
        let Some(zram) = &self.swap.devices[device].zram else { unreachable!("the device is a zram") };
        let (compressor, huge) = (zram.compressor, zram.pool.huge_size());
        self.charge_compress(compressor);
        let bytes = if bytes >= huge { units::PAGE_SIZE as u32 } else { bytes };
        let pool = PoolId::Zram(device as u8);
        let Some(zspage) = self.zs_malloc(env, pool, bytes, GFP) else { return false };
        self.swap.set_kept(entry, Kept::Compressed { pool, zspage, bytes: bytes as u16, store: 0 });
        true
    }

    /// Counts a page that goes to or comes from a zram, whose end its submitter awaits.
    pub(super) fn count_zram_io(&mut self, write: bool) {
        let (swap, page) =
            if write { (VmEvent::Pswpout, VmEvent::Pgpgout) } else { (VmEvent::Pswpin, VmEvent::Pgpgin) };
        self.stat.count(swap, 1);
        if self.rules.zram_io == ZramIo::Bio {
            self.stat.count(page, units::PAGE_SIZE >> 10);
        }
        self.charge(self.costs.copied_bio);
    }
}
