//! Metadata of ext4 in memory: the page cache of its device.
//!
//! Rule: a block of metadata (of an inode table, of a directory, of extents) is a page of the device's own file: movable, without
//! `__GFP_FS`, and it must not fail. It has a buffer head, and is charged and on the LRU like the page of any file. Each
//! look-up marks it accessed. Making one ends with looking it up, so that it is active from its start, until 3.10 referenced ([`PagevecAccess`]). Who changes an inode, or
//! that of a directory in which it makes or removes a name, has its block read first if that is not there.
//! Source: `__getblk_slow()`, `grow_dev_folio()`, `__find_get_block_slow()`, `touch_buffer()` (fs/buffer.c),
//! `__ext4_get_inode_loc()`, `ext4_reserve_inode_write()` (fs/ext4/inode.c), 6.12.
//! Abstracted: a page that is being read is valid at once for everyone but the reader.
//! Omitted: bitmaps and group descriptors, which are few; the 16 buffers that each CPU holds
//! (`bh_lrus`); read-ahead of inode tables.

use rules::PagevecAccess;
use units::{FileId, Gfp, Order, Pfn};

use super::attributes::Attributes;
use super::disk::Metadata;
use super::{FileRec, FsId, Need, Vfs};
use crate::pagecache::{FolioPlace, Slot};
use crate::{Bio, BioMemory, BioTarget, Env, Frame, Kind, Mm};

/// How pages of block devices are allocated: `GFP_USER` of the mapping, `__GFP_MOVABLE | __GFP_NOFAIL` of `sb_getblk()`.
const GFP: Gfp = Gfp::USER.without(Gfp::FS).with(Gfp::MOVABLE).with(Gfp::NOFAIL);

impl Vfs {
    /// Makes the file that stands for the device of a file system with such a page cache.
    pub(super) fn make_bdev(&mut self, fs: FsId) {
        let root = self.dirs.iter().position(|dir| dir.fs == fs).expect("it has a root");
        let blocks = self.fs[fs.0 as usize].spec.device_blocks();
        let rec = FileRec { flags: FileRec::BDEV, ..FileRec::UNUSED };
        let below = Attributes::below(super::DirId(root as u32));
        let file = self.new_file(fs, rec, Attributes { size: blocks, blocks, ..below });
        self.attributes.set_first_block(file, 0);
        self.fs[fs.0 as usize].bdev = Some(file);
    }
}

impl Mm {
    /// Pages in the page cache of block devices (`nr_blockdev_pages()`).
    pub fn blockdev_pages(&self) -> u64 {
        self.vfs.fs.iter().filter_map(|fs| fs.bdev).map(|bdev| u64::from(self.nr_cached(bdev))).sum()
    }

    /// How pages of a file that stands for a block device are allocated; `None` for any other.
    #[inline]
    pub(crate) fn bdev_gfp(&self, file: FileId) -> Option<Gfp> {
        self.vfs.rec(file).has(FileRec::BDEV).then_some(GFP)
    }

    /// The page that a block is cached in.
    pub(super) fn block_page(&self, bdev: FileId, block: u32) -> Option<Pfn> {
        match self.pagecache_get(bdev, block) {
            Slot::Page(pfn) => Some(pfn),
            Slot::Empty | Slot::Shadow(_) => None,
        }
    }

    /// Sees to it that a block of metadata is in the page cache of its device.
    pub(super) fn get_block(&mut self, env: &Env, fs: FsId, bdev: FileId, of: Metadata) -> Result<(), Need> {
        let (block, pages) = self.vfs.place(fs, of);
        debug_assert!(pages == 1);
        let pfn = match self.block_page(bdev, block) {
            Some(pfn) => {
                self.mark_page_accessed(env, pfn);
                pfn
            }
            None => self.add_block_page(env, bdev, block)?,
        };
        self.attach_buffers(env, pfn)?;
        let frame = &mut self.frames[pfn];
        if frame.has(Frame::UPTODATE) {
            return Ok(());
        }
        frame.set(Frame::UPTODATE);
        if self.vfs.take_fresh(fs, of) {
            return Ok(());
        }
        Err(Need::Read(Bio {
            device: self.vfs.fs[fs.0 as usize].spec.device,
            sector: Vfs::sector(block),
            pages: 1,
            write: false,
            sync: true,
            target: BioTarget::Metadata,
            memory: BioMemory::NONE,
        }))
    }

    /// Looks up the block of a file's inode in the page cache of its device, if that has one, and brings it there.
    pub(super) fn get_inode_block(&mut self, env: &Env, file: FileId) -> Result<(), Need> {
        let fs = self.vfs.fs_of(file);
        let Some(bdev) = self.vfs.fs[fs.0 as usize].bdev else { return Ok(()) };
        let ino = self.vfs.attributes.ino(file);
        if ino == super::NONE {
            return Ok(());
        }
        let (chunk, cluster) = self.vfs.fs[fs.0 as usize].cluster_of(ino);
        self.get_block(env, fs, bdev, Metadata::Inodes { chunk, cluster })
    }

    fn add_block_page(&mut self, env: &Env, bdev: FileId, block: u32) -> Result<Pfn, Need> {
        self.memcg_reserve(env, env.task.memcg, Order(0), GFP)?;
        self.reserve_nodes(env, FolioPlace::page(bdev, block), GFP)?;
        let mut hand = self.vfs.spare_pages.pop();
        if let Some(pfn) = hand {
            self.frames[pfn].set_kind(Kind::Held, Order(0));
        }
        let pfn = self.cache_folio(env, Order(0), GFP, &mut hand).map_err(Need::Page)?;
        self.insert_page(env, pfn, bdev, block, GFP);
        if self.rules.pagevec_access == PagevecAccess::Activates {
            self.frames[pfn].set(Frame::REFERENCED);
        }
        if self.vfs.fs[self.vfs.fs_of(bdev).0 as usize].journal.keeps(block) {
            self.frames[pfn].set(Frame::PINNED);
        }
        // It is still in the pagevec when it is looked up again.
        self.mark_page_accessed(env, pfn);
        self.lru_add(env, pfn);
        Ok(pfn)
    }
}
