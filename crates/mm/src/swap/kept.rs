//! Slots whose page is kept in memory: as one word, or compressed in zram or zswap.
//!
//! Rule: who writes a page to swap first drops what its slot held; then a page of zeros is noted in a bitmap; then zswap takes the
//! page, if it does; then the device gets it. Who reads one looks in the same order. What a slot holds goes with it.
//! Source: `swap_writepage()`, `swap_read_folio()` (mm/page_io.c), `swap_range_free()`, `swap_slot_free_notify()` (mm/swapfile.c); 6.12.
//! Since/until: [`ZeroPages`]. Until 6.10 zswap and zram keep the word by themselves.
//! Abstracted: pages of one word are pages of zeros (99 % of them are, says the series of 2024).

use rules::{Compressor, ZeroPages};
use units::{Content, Pfn};

use super::{Swap, SwapEntry};
use crate::stat::VmEvent;
use crate::zsmalloc::{ZsPageId, ZsPool};
use crate::{Env, Frame, Mm};

/// A pool of compressed pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolId {
    /// zswap's.
    Zswap,
    /// That of the zram device with this number among the swap devices.
    Zram(u8),
}

/// Who keeps a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keeper {
    /// The swap area's bitmap.
    Bitmap,
    Zswap,
    Zram,
}

/// What stands for the page of a slot in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Kept {
    /// Nothing: the device has it, or it was never written.
    #[default]
    Nothing,
    /// The word that it is filled with.
    Word(Keeper),
    /// A compressed page in a pool.
    Compressed {
        pool: PoolId,
        zspage: ZsPageId,
        bytes: u16,
        /// The number of the store, by which zswap's list knows whether it is still this page.
        store: u32,
    },
}

impl Swap {
    /// The pool with this name.
    pub(crate) fn pool_mut(&mut self, pool: PoolId) -> &mut ZsPool {
        match pool {
            PoolId::Zswap => &mut self.zswap.pool,
            PoolId::Zram(device) => {
                let zram = self.devices[usize::from(device)].zram.as_deref_mut();
                &mut zram.expect("the device is a zram").pool
            }
        }
    }

    /// What the page of a slot holds.
    pub(super) fn content(&self, entry: SwapEntry) -> Content {
        self.contents.of(self.vpn(entry))
    }

    pub(super) fn kept(&self, entry: SwapEntry) -> Kept {
        let (device, offset) = self.locate(entry);
        self.devices[device].kept.get(offset as usize).copied().unwrap_or_default()
    }

    pub(super) fn set_kept(&mut self, entry: SwapEntry, kept: Kept) {
        let (device, offset) = self.locate(entry);
        let slots = &mut self.devices[device].kept;
        if slots.len() <= offset as usize {
            if kept == Kept::Nothing {
                return;
            }
            units::table::grow(slots, offset as usize + 1, Kept::Nothing);
        }
        slots[offset as usize] = kept;
    }
}

impl Mm {
    /// Compressed pages in zswap.
    pub fn zswap_stored_pages(&self) -> u64 {
        self.swap.zswap.pool.objects()
    }

    /// Pages that zswap's pool takes (`zswap_total_pages()`).
    pub fn zswap_total_pages(&self) -> u64 {
        self.swap.zswap.pool.pages()
    }

    /// Keeps the page of a slot in memory, if no device is to hear of it; says whether.
    pub(super) fn keep_swapped(&mut self, env: &Env, entry: SwapEntry) -> bool {
        self.drop_kept(env, entry);
        let content = self.swap.content(entry);
        if content == Content::SameFilled && self.rules.zero_pages == ZeroPages::Bitmap {
            self.keep_word(entry, Keeper::Bitmap);
            return true;
        }
        self.zswap_store(env, entry, content)
    }

    /// Notes that a page is filled with one word, which is found by looking at all of it.
    pub(super) fn keep_word(&mut self, entry: SwapEntry, keeper: Keeper) {
        self.charge(self.costs.zero_page);
        self.swap.set_kept(entry, Kept::Word(keeper));
    }

    /// A slot holds nothing in memory any more.
    pub(crate) fn drop_kept(&mut self, env: &Env, entry: SwapEntry) {
        let kept = self.swap.kept(entry);
        if let Kept::Compressed { pool, zspage, .. } = kept {
            self.zs_free(env, pool, zspage);
        }
        self.swap.set_kept(entry, Kept::Nothing);
    }

    /// Reads the page of a slot from memory, if that is where it is; says whether. A page that comes from zswap to the swap cache is
    /// dropped there, and has to be written again (`zswap_load()`).
    pub(super) fn read_kept(&mut self, env: &Env, entry: SwapEntry, cached: Option<Pfn>) -> bool {
        match self.swap.kept(entry) {
            Kept::Nothing => return false,
            Kept::Word(keeper) => {
                self.charge(self.costs.zero_page);
                match keeper {
                    Keeper::Bitmap => {}
                    Keeper::Zswap => self.stat.count(VmEvent::Zswpin, 1),
                    Keeper::Zram => self.count_zram_io(false),
                }
            }
            Kept::Compressed { pool, bytes, .. } => {
                let compressor = self.compressor(pool);
                self.charge_decompress(compressor, u32::from(bytes));
                match (pool, cached) {
                    (PoolId::Zram(_), _) => self.count_zram_io(false),
                    (PoolId::Zswap, None) => self.stat.count(VmEvent::Zswpin, 1),
                    (PoolId::Zswap, Some(pfn)) => {
                        self.stat.count(VmEvent::Zswpin, 1);
                        self.drop_kept(env, entry);
                        self.frames[pfn].set(Frame::DIRTY);
                    }
                }
            }
        }
        true
    }

    fn compressor(&self, pool: PoolId) -> Compressor {
        match pool {
            PoolId::Zswap => self.tunables.zswap_compressor,
            PoolId::Zram(device) => self.swap.devices[usize::from(device)]
                .zram
                .as_ref()
                .map_or(Compressor::default(), |zram| zram.compressor),
        }
    }

    pub(super) fn charge_compress(&mut self, compressor: Compressor) {
        self.charge(match compressor {
            Compressor::Lzo | Compressor::LzoRle => self.costs.compress_lzo,
            Compressor::Lz4 => self.costs.compress_lz4,
            Compressor::Zstd => self.costs.compress_zstd,
        });
    }

    /// Charges the reading of a compressed page; one that takes a page is copied.
    pub(super) fn charge_decompress(&mut self, compressor: Compressor, bytes: u32) {
        if u64::from(bytes) == units::PAGE_SIZE {
            return self.charge(self.costs.copy_page);
        }
        self.charge(match compressor {
            Compressor::Lzo | Compressor::LzoRle => self.costs.decompress_lzo,
            Compressor::Lz4 => self.costs.decompress_lz4,
            Compressor::Zstd => self.costs.decompress_zstd,
        });
    }
}
