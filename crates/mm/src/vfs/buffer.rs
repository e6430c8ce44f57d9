//! Buffers of XFS's metadata: inode clusters and directory blocks; ext4's are in bdev.rs.
//!
//! Rule: a buffer is a head (slab object) and single unmovable pages. It is on the LRU of its node; the shrinker lowers
//! its reference count and rotates, and frees at 0. The count is 1 at first; who reads an inode or a name from it makes it 2, and who
//! flushes an inode into it leaves it as it is. A new block is held by its log item, and on no list, until it is written. So is a
//! directory block with changes that are only in the log; inodes have log items of their own, which do not hold their cluster.
//! Source: `xfs_buf_allocate_memory()`, `xfs_buf_rele()`, `xfs_buftarg_isolate()`, `xfs_buf_set_ref()` and who calls it, `xfs_iflush()`,
//! fs/xfs, 4.20.
//! Abstracted: the pages of a read buffer are valid at once for everyone but the reader. Pages come one by one (in
//! bulk since 5.14). A new block is on the LRU from the beginning of its write on, not from the end; a directory block that is found with a count
//! of 0 while its log item holds it stays on the LRU, where the kernel takes it off and frees it once it is written.
//! Omitted: btree blocks, group headers, a directory's index, buffers smaller than a page, readahead.

use units::{Gfp, NodeId, Order, Pfn, table};

use super::buffer_item::BufferItem;
use super::disk::Metadata;
use super::{Dir, DirId, FsId, Need, Scanned, Vfs};
use crate::links::{Link, Linked, NONE};
use crate::slab::Obj;
use crate::{AllocRequest, Bio, BioMemory, BioTarget, Env, Kind, Mm};

/// Reference count of a new buffer (`_xfs_buf_alloc()`).
const NEW: u8 = 1;
/// Reference count that reading from it gives (`XFS_INO_REF`, `XFS_DIR_BTREE_REF`).
const READ: u8 = 2;
/// `GFP_NOFS | __GFP_NOWARN` (`xb_to_gfp()`).
const GFP: Gfp = Gfp::NOFS.with(Gfp::NOWARN);

/// One buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) head: Obj,
    pub(super) fs: FsId,
    pub(super) of: Metadata,
    pub(super) pages: [Pfn; 4],
    /// Whether it is on the LRU of its node.
    pub(super) listed: bool,
    /// Whether it is to be written with others, and held until then.
    pub(super) queued: bool,
    link: Link,
    /// `b_lru_ref`.
    references: u8,
    /// Its log item, while it has one.
    pub(super) log: Option<Box<BufferItem>>,
}

impl Linked for Vec<Buffer> {
    fn link(&self, id: u32) -> Link {
        self[id as usize].link
    }
    fn set_link(&mut self, id: u32, link: Link) {
        self[id as usize].link = link;
    }
}

impl Vfs {
    /// Where a block's buffer is remembered.
    fn buffer_slot(&mut self, fs: FsId, of: Metadata) -> &mut u32 {
        match of {
            Metadata::Inodes { chunk, cluster } => {
                &mut self.fs[fs.0 as usize].chunks[chunk as usize].buffers[cluster as usize]
            }
            Metadata::Directory { dir, index } => &mut self.dirs[dir.0 as usize].blocks[index as usize].buffer,
            Metadata::Leaf(file) => unreachable!("the leaf of {file:?} is in the page cache of its device"),
        }
    }

    /// Number of a block's buffer, if it is in memory.
    pub(super) fn buffer_number(&mut self, fs: FsId, of: Metadata) -> Option<usize> {
        if self.fs[fs.0 as usize].bdev.is_some() {
            return None;
        }
        let number = *self.buffer_slot(fs, of);
        (number != NONE).then_some(number as usize)
    }

    /// Whether it has changes that are only in the log.
    pub(super) fn is_logged(&self, fs: FsId, of: Metadata) -> bool {
        match of {
            Metadata::Inodes { chunk, cluster } => self.fs[fs.0 as usize].cluster_logged(chunk, cluster),
            // The directory may be gone.
            Metadata::Directory { dir, index } => {
                self.dirs[dir.0 as usize].blocks.get(index as usize).is_some_and(|block| block.dirty)
            }
            Metadata::Leaf(file) => self.fs[fs.0 as usize].leaves[&file].dirty,
        }
    }

    /// Whether nothing is on disk yet; it is from now on.
    pub(super) fn take_fresh(&mut self, fs: FsId, of: Metadata) -> bool {
        match of {
            Metadata::Inodes { chunk, cluster } => {
                let record = &mut self.fs[fs.0 as usize].chunks[chunk as usize];
                let fresh = record.fresh >> cluster & 1 == 1;
                record.fresh &= !(1 << cluster);
                fresh
            }
            Metadata::Directory { dir, index } => {
                std::mem::take(&mut self.dirs[dir.0 as usize].blocks[index as usize].fresh)
            }
            Metadata::Leaf(file) => std::mem::take(&mut self.leaf(fs, file).fresh),
        }
    }

    /// First block and number of pages.
    pub(super) fn place(&self, fs: FsId, of: Metadata) -> (u32, u32) {
        let fs = &self.fs[fs.0 as usize];
        match of {
            Metadata::Inodes { chunk, cluster } => {
                let pages = fs.spec.cluster_pages;
                (fs.chunks[chunk as usize].block + cluster * pages, pages)
            }
            Metadata::Directory { dir, index } => (self.dirs[dir.0 as usize].blocks[index as usize].block, 1),
            Metadata::Leaf(file) => (fs.leaves[&file].block, 1),
        }
    }

    /// The changes of a block are in the log.
    pub(super) fn note_committed(&mut self, fs: FsId, of: Metadata) {
        match of {
            Metadata::Inodes { chunk, cluster } => self.fs[fs.0 as usize].note_flushed(chunk, cluster),
            Metadata::Directory { dir, index } => {
                self.dirs[dir.0 as usize].blocks[index as usize].dirty = false;
            }
            Metadata::Leaf(file) => self.leaf(fs, file).dirty = false,
        }
    }

    /// Notes a change of a directory block.
    pub(super) fn log_dir_block(&mut self, dir: DirId, index: u32) {
        let Dir { fs, ref mut blocks, .. } = self.dirs[dir.0 as usize];
        if !std::mem::replace(&mut blocks[index as usize].dirty, true) {
            self.fs[fs.0 as usize].note_logged(Metadata::Directory { dir, index });
        }
    }
}

impl Mm {
    /// The bio that writes a block of metadata, which counts as clean from now on but for inodes that are pinned; none if it is so already.
    pub(super) fn begin_metadata_write(&mut self, env: &Env, fs: FsId, of: Metadata, sync: bool) -> Option<Bio> {
        if !self.vfs.is_logged(fs, of) {
            return None;
        }
        self.vfs.note_committed(fs, of);
        Some(self.metadata_write(env, fs, of, sync))
    }

    /// The bio that writes a block of metadata, whose changes have been noted.
    pub(super) fn metadata_write(&mut self, env: &Env, fs: FsId, of: Metadata, sync: bool) -> Bio {
        if let Some(number) = self.vfs.buffer_number(fs, of) {
            self.list_buffer(number);
            self.free_written_item(env, number);
        }
        let (block, pages) = self.vfs.place(fs, of);
        let (device, sector) = (self.vfs.fs[fs.0 as usize].spec.device, Vfs::sector(block));
        Bio { device, sector, pages, write: true, sync, target: BioTarget::Metadata, memory: BioMemory::NONE }
    }

    /// Puts a buffer on the LRU of its node, unless it is on it.
    fn list_buffer(&mut self, number: usize) {
        let Buffer { head, fs, ref mut listed, .. } = self.vfs.buffers[number];
        if !std::mem::replace(listed, true) {
            let node = self.buffer_node(fs, head);
            self.vfs.buffer_lru[node.index()].push_back(&mut self.vfs.buffers, number as u32);
        }
    }

    /// The node of a buffer's head, on whose LRU it is.
    fn buffer_node(&self, fs: FsId, head: Obj) -> NodeId {
        self.slabs.node_of(self.vfs.fs[fs.0 as usize].spec.buffer_cache, head)
    }

    /// Sees to it that a block of metadata is in memory, to read from it.
    pub(super) fn read_buffer(&mut self, env: &Env, fs: FsId, of: Metadata) -> Result<(), Need> {
        self.get_buffer(env, fs, of)?;
        if let Some(number) = self.vfs.buffer_number(fs, of) {
            self.vfs.buffers[number].references = READ;
        }
        Ok(())
    }

    /// Sees to it that a block of metadata is in memory.
    pub(super) fn get_buffer(&mut self, env: &Env, fs: FsId, of: Metadata) -> Result<(), Need> {
        if let Some(bdev) = self.vfs.fs[fs.0 as usize].bdev {
            return self.get_block(env, fs, bdev, of);
        }
        if *self.vfs.buffer_slot(fs, of) != NONE {
            return Ok(());
        }
        let (block, count) = self.vfs.place(fs, of);
        let spec = self.vfs.fs[fs.0 as usize].spec;
        let head = self.vfs_alloc(env, spec.buffer_cache, GFP)?;
        let pages = match self.buffer_pages(env, count) {
            Ok(pages) => pages,
            Err(need) => {
                self.slab_free(env, spec.buffer_cache, head);
                return Err(need);
            }
        };
        let buffer =
            Buffer { head, fs, of, pages, listed: false, queued: false, link: Link::NONE, references: NEW, log: None };
        let number = match self.vfs.unused_buffers.pop() {
            Some(number) => {
                self.vfs.buffers[number as usize] = buffer;
                number
            }
            None => {
                table::push(&mut self.vfs.buffers, buffer);
                self.vfs.buffers.len() as u32 - 1
            }
        };
        *self.vfs.buffer_slot(fs, of) = number;
        if self.vfs.take_fresh(fs, of) {
            return Ok(());
        }
        self.list_buffer(number as usize);
        let bio = Bio {
            device: spec.device,
            sector: Vfs::sector(block),
            pages: count,
            write: false,
            sync: true,
            target: BioTarget::Metadata,
            memory: BioMemory::NONE,
        };
        Err(Need::Read(bio))
    }

    /// Single pages for a buffer; those got before one is missing are kept for the next attempt.
    fn buffer_pages(&mut self, env: &Env, count: u32) -> Result<[Pfn; 4], Need> {
        let request = AllocRequest { gfp: GFP, order: Order(0), node: env.node };
        while self.vfs.spare_pages.len() < count as usize {
            let pfn = self.alloc_pages(env, request).ok_or(Need::Page(request))?;
            self.vfs_add_page(env, pfn);
        }
        let mut pages = [Pfn::NONE; 4];
        for page in &mut pages[..count as usize] {
            *page = self.vfs.spare_pages.pop().expect("there are enough");
        }
        Ok(pages)
    }

    /// Takes a page that was missing (`Need::Page`).
    pub fn vfs_add_page(&mut self, _env: &Env, pfn: Pfn) {
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.kind() == Kind::Held && frame.order() == Order(0));
        frame.set_kind(Kind::Kernel, Order(0));
        self.vfs.spare_pages.push(pfn);
    }

    /// Frees a buffer.
    pub(super) fn free_buffer(&mut self, env: &Env, number: u32) {
        let Buffer { head, fs, of, pages, listed, .. } = self.vfs.buffers[number as usize];
        let cache = self.vfs.fs[fs.0 as usize].spec.buffer_cache;
        if listed {
            let node = self.buffer_node(fs, head);
            self.vfs.buffer_lru[node.index()].remove(&mut self.vfs.buffers, number);
        }
        *self.vfs.buffer_slot(fs, of) = NONE;
        self.vfs.unused_buffers.push(number);
        if let Some(log) = self.vfs.buffers[number as usize].log.take() {
            self.free_item(env, *log);
        }
        self.vfs.buffers[number as usize].pages = [Pfn::NONE; 4];
        self.vfs.buffers[number as usize].listed = false;
        self.vfs.buffers[number as usize].queued = false;
        for pfn in pages.into_iter().filter(|p| p.is_some()) {
            self.frames[pfn].set_kind(Kind::Held, Order(0));
            self.free_pages(env, pfn, Order(0));
        }
        self.slab_free(env, cache, head);
        table::give_back_unused(&mut self.vfs.buffers, &mut self.vfs.unused_buffers);
    }

    /// Frees the buffers of a chunk that has no inode any more.
    pub(super) fn free_chunk_buffers(&mut self, env: &Env, fs: FsId, chunk: u32) {
        for number in self.vfs.fs[fs.0 as usize].chunks[chunk as usize].buffers {
            if number != NONE {
                self.free_buffer(env, number);
            }
        }
    }

    /// Shrinker of the buffers of a node (`xfs_buftarg_shrink_scan()`).
    pub(super) fn shrink_buffers(&mut self, env: &Env, node: NodeId, nr: u64) -> Scanned {
        let mut freed = 0;
        for _ in 0..nr.min(u64::from(self.vfs.buffer_lru[node.index()].len()) * 3) {
            let Some(number) = self.vfs.buffer_lru[node.index()].front() else { break };
            self.charge(self.costs.shrink_object);
            let Buffer { fs, of, references, queued, .. } = self.vfs.buffers[number as usize];
            let held = queued || matches!(of, Metadata::Directory { .. }) && self.vfs.is_logged(fs, of);
            if references > 0 || held {
                self.vfs.buffers[number as usize].references = references.saturating_sub(1);
                self.vfs.buffer_lru[node.index()].rotate(&mut self.vfs.buffers, number);
            } else {
                self.free_buffer(env, number);
                freed += 1;
            }
        }
        Scanned { scanned: nr, freed, evicted: 0 }
    }

    /// Blocks of metadata whose changes are only in the log, at most.
    pub fn vfs_dirty_metadata(&self, fs: FsId) -> usize {
        self.vfs.fs[fs.0 as usize].dirty.len()
    }
}
