//! Where inodes and blocks lie on a device.
//!
//! Rule: directories go round the allocation groups, in ext4 only those in the root, with all that is below them (with
//! `flex_bg`: orlov.rs); a file's inode and blocks are in the group of its directory.
//! Inodes come in chunks of 64. Blocks of delayed allocation are allocated at writeback for the whole range that is dirty by
//! then, at the end of the file with a preallocation as large as the file from 64 KiB on, so a file written page by page is
//! contiguous; the last close gives the preallocation back.
//! Source: `xfs_dialloc()`, `xfs_iomap_prealloc_size()`, `xfs_free_eofblocks()`, fs/xfs, 4.20.
//! Abstracted: what is dirty before the page that is written first has an allocation of its own later (XFS allocates for all of a delayed
//! extent at once, whichever page is written first); a preallocation takes no more than nobody has a claim on (XFS makes it smaller as the device fills).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rules::XfsWriteMap;
use units::{FileId, table};

use super::cil::Cil;
use super::extent_tree::Leaf;
use super::extents::FileExtent;
use super::jbd2::Journal;
use super::orlov::Orlov;
use super::space::Space;
use super::{DirId, Extent, FileRec, FsId, FsKind, FsSpec, NONE, Vfs};
use crate::{Env, Mm};

/// Sectors of a block.
const SECTORS: u64 = 8;
/// Largest preallocation: 1 GiB (XFS allows 8 GiB less a block).
const PREALLOC_MAX: u32 = 1 << 18;

/// 64 inodes on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) block: u32,
    pub(super) ag: u32,
    /// Inodes not in use.
    pub(super) free: u64,
    /// Buffer of each cluster, if it is in memory.
    pub(super) buffers: [u32; 4],
    /// Clusters of which nothing is on disk to be read.
    pub(super) fresh: u8,
    /// Inodes with a change that is only in the log, and those of them in the checkpoint that is being collected, which pins them.
    pub(super) logged: u64,
    pub(super) pinned: u64,
    /// Inodes whose extents changed since their cluster was written (`XFS_ILOG_DEXT` in `ili_fields`).
    pub(super) extents: u64,
}

/// What has changed and is to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Metadata {
    /// A cluster of a chunk.
    Inodes { chunk: u32, cluster: u32 },
    /// A block of a directory.
    Directory { dir: DirId, index: u32 },
    /// The block that holds the extents of a file.
    Leaf(FileId),
}

/// A mounted file system.
#[derive(Debug)]
pub(super) struct Fs {
    pub(super) spec: FsSpec,
    pub(super) chunks: Vec<Chunk>,
    unused_chunks: Vec<u32>,
    pub(super) space: Space,
    /// Chunks of each group with a free inode.
    room: Vec<BTreeSet<u32>>,
    next_dir_group: u32,
    /// log2 of the inodes of a cluster.
    cluster_shift: u32,
    /// With `flex_bg`.
    pub(super) orlov: Option<Orlov>,
    /// Blocks whose changes are only in the log, oldest first, with where in the log the oldest change is; of ext4 those that
    /// were changed since the journal last took them up.
    pub(super) dirty: std::collections::VecDeque<(u64, Metadata)>,
    /// Blocks that are to be written together (`ail_buf_list`); each that is in memory still holds its buffer.
    pub(super) delwri: Vec<Metadata>,
    pub(super) cil: Cil,
    pub(super) journal: Journal,
    /// Credits of the journal that are reserved for conversions of extents (`j_reserved_credits`).
    pub(super) reserved: u32,
    /// The device's own file, where metadata is in its page cache.
    pub(super) bdev: Option<FileId>,
    /// By the file whose extents they hold.
    pub(super) leaves: BTreeMap<FileId, Leaf>,
    /// Files whose blocks the running transaction has allocated, if their data goes before it.
    pub(super) ordered: BTreeSet<FileId>,
}

impl Fs {
    pub(super) fn new(spec: FsSpec) -> Fs {
        spec.check();
        Fs {
            spec,
            chunks: Vec::new(),
            unused_chunks: Vec::new(),
            space: Space::new(&spec),
            room: vec![BTreeSet::new(); spec.ag_count as usize],
            next_dir_group: 0,
            cluster_shift: (64 / spec.clusters()).ilog2(),
            orlov: spec.flex_bg.then(|| Orlov::new(&spec)),
            dirty: std::collections::VecDeque::new(),
            delwri: Vec::new(),
            cil: Cil::new(&spec),
            journal: Journal::default(),
            reserved: 0,
            bdev: None,
            leaves: BTreeMap::new(),
            ordered: BTreeSet::new(),
        }
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Chunk>()
            + self.dirty.capacity() * size_of::<(u64, Metadata)>()
            + self.delwri.capacity() * size_of::<Metadata>()
            + self.cil.host_bytes()
            + self.journal.host_bytes()
            + self.leaves.len() * size_of::<(FileId, Leaf)>()
            + self.ordered.len() * size_of::<FileId>()
            + self.space.host_bytes()
    }

    /// Blocks that chunks of inodes take, of those that tables do not.
    pub(super) fn chunk_blocks(&self) -> u64 {
        if self.orlov.is_some() {
            return 0;
        }
        (self.chunks.len() - self.unused_chunks.len()) as u64 * u64::from(self.spec.chunk_pages())
    }

    /// The group of the next directory.
    pub(super) fn rotor(&mut self) -> u32 {
        let group = self.next_dir_group;
        self.next_dir_group = (group + 1) % self.spec.ag_count;
        group
    }

    /// A chunk of the group with a free inode, and the first free one in it; a new chunk if none has, and none without
    /// room for one.
    pub(super) fn find_inode(&mut self, group: u32) -> Option<(u32, u32)> {
        let group = self.orlov.as_ref().map_or(Some(group), |orlov| orlov.group_of_inode(group))?;
        if let Some(&chunk) = self.room[group as usize].first() {
            return Some((chunk, self.chunks[chunk as usize].free.trailing_zeros()));
        }
        let block = match &mut self.orlov {
            Some(orlov) => self.space.table(group) + orlov.next_chunk(group),
            None => self.space.take_for_metadata(group, self.spec.chunk_pages())?,
        };
        let fresh = (1u8 << self.spec.clusters()) - 1;
        let chunk =
            Chunk { block, ag: group, free: u64::MAX, buffers: [NONE; 4], fresh, logged: 0, pinned: 0, extents: 0 };
        let number = match self.unused_chunks.pop() {
            Some(number) => {
                self.chunks[number as usize] = chunk;
                number
            }
            None => {
                table::push(&mut self.chunks, chunk);
                self.chunks.len() as u32 - 1
            }
        };
        self.room[group as usize].insert(number);
        Some((number, 0))
    }

    pub(super) fn take_inode(&mut self, chunk: u32, slot: u32) -> u32 {
        let record = &mut self.chunks[chunk as usize];
        debug_assert!(record.free >> slot & 1 == 1);
        record.free &= !(1 << slot);
        if record.free == 0 {
            self.room[record.ag as usize].remove(&chunk);
        }
        if let Some(orlov) = &mut self.orlov {
            orlov.take_inode(record.ag);
        }
        chunk * 64 + slot
    }

    /// Frees an inode on disk; says which chunk is empty now, if one is.
    pub(super) fn give_inode(&mut self, ino: u32) -> Option<u32> {
        let chunk = ino / 64;
        let record = &mut self.chunks[chunk as usize];
        debug_assert!(record.free >> (ino % 64) & 1 == 0, "inode {ino} is free already");
        record.free |= 1 << (ino % 64);
        record.pinned &= !(1 << (ino % 64));
        self.room[record.ag as usize].insert(chunk);
        if let Some(orlov) = &mut self.orlov {
            orlov.give_inode(record.ag);
        }
        (record.free == u64::MAX).then_some(chunk)
    }

    /// Gives the blocks of an empty chunk back; its buffers must be gone.
    pub(super) fn give_chunk(&mut self, chunk: u32) {
        let Chunk { block, ag, free, buffers, .. } = self.chunks[chunk as usize];
        assert!(free == u64::MAX && buffers == [NONE; 4]);
        self.room[ag as usize].remove(&chunk);
        self.chunks[chunk as usize].logged = 0;
        self.chunks[chunk as usize].free = 0;
        self.unused_chunks.push(chunk);
        self.space.give(block, self.spec.chunk_pages());
    }

    /// Cluster of an inode, and the bit of it.
    #[inline]
    pub(super) fn cluster_of(&self, ino: u32) -> (u32, u32) {
        (ino / 64, (ino % 64) >> self.cluster_shift)
    }

    /// Notes that an inode's last change is only in the log.
    #[inline]
    pub(super) fn log_inode(&mut self, ino: u32) {
        let (chunk, cluster) = self.cluster_of(ino);
        let first = !self.cluster_logged(chunk, cluster);
        self.chunks[chunk as usize].logged |= 1 << (ino % 64);
        if first {
            self.note_logged(Metadata::Inodes { chunk, cluster });
        }
    }

    /// The inodes of a cluster, a bit each.
    #[inline]
    fn inodes_of(&self, cluster: u32) -> u64 {
        let inodes = 64 / self.spec.clusters();
        u64::MAX >> (64 - inodes) << (cluster * inodes)
    }

    /// Whether a cluster has inodes with changes that are only in the log.
    #[inline]
    pub(super) fn cluster_logged(&self, chunk: u32, cluster: u32) -> bool {
        self.chunks[chunk as usize].logged & self.inodes_of(cluster) != 0
    }

    /// Whether a cluster has inodes that can be flushed into it: those with changes that nothing pins.
    pub(super) fn cluster_flushable(&self, chunk: u32, cluster: u32) -> bool {
        let Chunk { logged, pinned, .. } = self.chunks[chunk as usize];
        logged & !pinned & self.inodes_of(cluster) != 0
    }

    /// Notes whether an inode is in the checkpoint that is being collected.
    pub(super) fn set_pinned(&mut self, ino: u32, on: bool) {
        if ino != NONE {
            let pinned = &mut self.chunks[ino as usize / 64].pinned;
            *pinned = *pinned & !(1 << (ino % 64)) | u64::from(on) << (ino % 64);
        }
    }

    /// Notes that an inode's extents changed.
    pub(super) fn note_extents(&mut self, ino: u32) {
        self.chunks[ino as usize / 64].extents |= 1 << (ino % 64);
    }

    /// Whether an inode's extents changed since it was written.
    pub(super) fn extents_changed(&self, ino: u32) -> bool {
        self.chunks[ino as usize / 64].extents >> (ino % 64) & 1 == 1
    }

    /// All inodes of a cluster that nothing pins are flushed into it (`xfs_iflush_cluster()`).
    pub(super) fn note_flushed(&mut self, chunk: u32, cluster: u32) {
        let all = self.inodes_of(cluster);
        let chunk = &mut self.chunks[chunk as usize];
        chunk.logged &= !all | chunk.pinned;
        chunk.extents &= !all | chunk.pinned;
    }

    /// A block has its first change that is only in the log.
    pub(super) fn note_logged(&mut self, of: Metadata) {
        self.dirty.push_back((self.cil.head, of));
    }

    /// Whether an inode has changes that are only in the log.
    pub(super) fn inode_logged(&self, ino: u32) -> bool {
        self.chunks[ino as usize / 64].logged >> (ino % 64) & 1 == 1
    }
}

impl Vfs {
    /// The extent that holds a page, from that page on.
    pub(super) fn find_extent(&self, file: FileId, index: u32) -> Option<(u32, u32)> {
        let (rec, blocks) = (self.rec(file), self.attributes.blocks(file));
        if index < blocks {
            return Some((self.attributes.first_block(file) + index, blocks - index));
        }
        let extent = self.extents.find(rec.more, blocks, index)?;
        let into = index - extent.index;
        Some((extent.block + into, extent.blocks - into))
    }

    /// Blocks to allocate for dirty pages from `index`: theirs, and at the end of the file the preallocation, but not over an
    /// extent that follows. What of a sparse file nobody has stored to stays a hole.
    fn blocks_wanted(&self, file: FileId, index: u32, pages: u32) -> u32 {
        let (rec, size) = (self.rec(file), self.attributes.size(file));
        let written = index + pages;
        let mut end = written;
        if written >= size && size >= self.spec_of(file).prealloc_from_pages && rec.has(FileRec::OPEN) {
            end = written.saturating_add(written.min(PREALLOC_MAX));
        }
        let following = self.extents.next_start(rec.more, self.attributes.blocks(file), index);
        let unclaimed = self.fs[self.fs_of(file).0 as usize].space.available();
        let most = u32::try_from(u64::from(pages) + unclaimed).unwrap_or(u32::MAX);
        (end.min(following.unwrap_or(u32::MAX)) - index).min(most)
    }

    /// Gives a page that has no block one, and up to `want - 1` pages behind it: the first block, and how many there are.
    fn add_extent(&mut self, file: FileId, index: u32, want: u32) -> (u32, u32) {
        let group = self.dirs[self.attributes.parent(file).0 as usize].ag;
        let fs = self.fs_of(file).0 as usize;
        let first = self.attributes.blocks(file);
        let rec = &mut self.files[file.index()];
        if first > 0 && index == first {
            let block = self.attributes.first_block(file) + first;
            let got = self.fs[fs].space.extend(block, want);
            if got > 0 {
                self.attributes.set_blocks(file, first + got);
                self.extents.begins_at(&mut rec.more, first + got);
                return (block, got);
            }
        } else if let Some(before) = self.extents.ending_at(rec.more, first, index) {
            let block = before.block + before.blocks;
            let got = self.fs[fs].space.extend(block, want);
            if got > 0 {
                self.extents.lengthen(&mut rec.more, index, got);
                return (block, got);
            }
        }
        let (block, blocks) = self.fs[fs].space.take(group, want).expect("a dirty page has a claim on a block");
        if first == 0 && index == 0 {
            self.attributes.set_first_block(file, block);
            self.attributes.set_blocks(file, blocks);
            self.extents.begins_at(&mut rec.more, blocks);
        } else {
            self.extents.insert(&mut rec.more, first, FileExtent { index, block, blocks });
        }
        (block, blocks)
    }

    /// Frees the blocks from page `from` on.
    pub(super) fn free_blocks(&mut self, file: FileId, from: u32) {
        let extents = self.logged_extents(file);
        let fs = self.fs_of(file).0 as usize;
        let first = self.attributes.blocks(file);
        let rec = &mut self.files[file.index()];
        if first > from {
            self.fs[fs].space.give(self.attributes.first_block(file) + from, first - from);
            self.attributes.set_blocks(file, from);
        }
        let space = &mut self.fs[fs].space;
        self.extents.cut(&mut rec.more, first, from, |block, blocks| space.give(block, blocks));
        self.relog_extents(file, extents);
    }

    /// The first extent of a file that ends behind a page: its pages.
    pub(super) fn extent_from(&self, file: FileId, page: u32) -> Option<(u32, u32)> {
        let (more, first) = (self.rec(file).more, self.attributes.blocks(file));
        if page < first {
            return Some((0, first));
        }
        let find = |page| self.extents.find(more, first, page);
        let extent = find(page).or_else(|| find(self.extents.next_start(more, first, page)?))?;
        Some((extent.index, extent.index + extent.blocks))
    }

    /// Where the extent before a page without a block ends, and where the next one begins.
    pub(super) fn extents_around(&self, file: FileId, page: u32) -> (Option<u32>, Option<u32>) {
        let (more, first) = (self.rec(file).more, self.attributes.blocks(file));
        if page < first {
            return (None, None);
        }
        let before = self.extents.end_before(more, first, page);
        (before.or((first > 0).then_some(first)), self.extents.next_start(more, first, page))
    }

    fn extent(&self, file: FileId, (block, pages): (u32, u32)) -> Extent {
        Extent { device: self.spec_of(file).device, sector: u64::from(block) * SECTORS, pages }
    }

    /// First sector of a block.
    pub(super) fn sector(block: u32) -> u64 {
        u64::from(block) * SECTORS
    }

    pub(super) fn fs_mut(&mut self, fs: FsId) -> &mut Fs {
        &mut self.fs[fs.0 as usize]
    }
}

impl Mm {
    /// Where a page of a file lies on its device; None while its allocation is delayed.
    pub fn map_block(&self, file: FileId, index: u32) -> Option<Extent> {
        let found = self.vfs.find_extent(file, index)?;
        Some(self.vfs.extent(file, found))
    }

    /// Allocates blocks for `pages` pages from `index` (delayed allocation, at writeback); the extent says how many
    /// of them are contiguous.
    pub fn allocate_blocks(&mut self, env: &Env, file: FileId, index: u32, pages: u32) -> Extent {
        assert!(pages > 0);
        if let Some((block, blocks)) = self.vfs.find_extent(file, index) {
            return self.vfs.extent(file, (block, blocks.min(pages)));
        }
        self.allocate_missing(env, file, index, pages)
    }

    /// The same where the first page is known to have no block.
    pub(crate) fn allocate_missing(&mut self, env: &Env, file: FileId, index: u32, pages: u32) -> Extent {
        let (block, blocks) = self.add_blocks(env, file, index, pages);
        self.vfs.extent(file, (block, blocks.min(pages)))
    }

    /// Adds an extent: its first block, and how many there are.
    fn add_blocks(&mut self, env: &Env, file: FileId, index: u32, pages: u32) -> (u32, u32) {
        self.note_allocating(env, file);
        let want = self.vfs.blocks_wanted(file, index, pages);
        let extents = self.vfs.logged_extents(file);
        let (block, blocks) = self.vfs.add_extent(file, index, want);
        debug_assert_eq!(self.vfs.find_extent(file, index), Some((block, blocks)));
        self.vfs.relog_extents(file, extents);
        self.unclaim_allocated(file, index, blocks);
        self.note_allocated(env, file, index, blocks.min(pages));
        self.note_unwritten(file, index);
        self.log_inode(file);
        (block, blocks)
    }

    /// The extent of so many blocks at `index` is new: dirty pages in it have no claim any more.
    fn unclaim_allocated(&mut self, file: FileId, index: u32, blocks: u32) {
        let (mut from, end) = (index, index.saturating_add(blocks));
        let mut claims = 0;
        while let Some(dirty) = self.pagecache.trees.next_dirty(file.0, from).filter(|dirty| *dirty < end) {
            claims += 1;
            from = dirty + 1;
        }
        self.space_of(file).unclaim(claims);
    }

    fn space_of(&mut self, file: FileId) -> &mut Space {
        let fs = self.vfs.fs_of(file);
        &mut self.vfs.fs_mut(fs).space
    }

    /// Blocks that pages may still claim on a file's device.
    #[cfg(test)]
    pub(crate) fn room_of(&mut self, file: FileId) -> u64 {
        self.space_of(file).available()
    }

    /// How many of these pages of a file may be dirtied, up to the first that is clean, has no block and finds none to claim.
    pub(crate) fn nr_room_for(&mut self, file: FileId, indices: Range<u32>) -> u32 {
        let mut left = self.space_of(file).available();
        if left >= indices.len() as u64 {
            return indices.len() as u32;
        }
        let mut takes_room = |index: u32| {
            let claims = !self.pagecache.trees.is_dirty(file.0, index) && self.vfs.find_extent(file, index).is_none();
            let there_is = !claims || left > 0;
            left -= u64::from(claims && there_is);
            there_is
        };
        indices.take_while(|index| takes_room(*index)).count() as u32
    }

    /// A page was dirtied: without a block it claims one.
    #[inline]
    pub(crate) fn reserve_delalloc(&mut self, file: FileId, index: u32) {
        if self.vfs.find_extent(file, index).is_none() {
            self.space_of(file).claim();
        }
    }

    /// A dirty page is dropped.
    pub(crate) fn release_delalloc(&mut self, env: &Env, file: FileId, index: u32) {
        if self.vfs.find_extent(file, index).is_none() {
            self.space_of(file).unclaim(1);
            self.note_dropped(env, file, index);
        }
    }

    /// Files give back what was allocated for them beyond their ends, as when the device is full
    /// (`xfs_icache_free_eofblocks()`); says how many blocks.
    pub fn vfs_free_preallocations(&mut self) -> u64 {
        let free = |vfs: &Vfs| vfs.fs.iter().map(|fs| fs.space.free()).sum::<u64>();
        let before = free(&self.vfs);
        for file in (0..self.vfs.files.len() as u32).map(FileId) {
            let rec = self.vfs.rec(file);
            if rec.has(FileRec::LIVE) && !rec.has(FileRec::DIR | FileRec::NEGATIVE) {
                let size = self.vfs.attributes.size(file);
                self.vfs.free_blocks(file, size);
            }
        }
        free(&self.vfs) - before
    }

    /// Pages that the file has, by its size.
    pub fn inode_size_pages(&self, file: FileId) -> u32 {
        debug_assert!(!self.vfs.rec(file).has(FileRec::DIR));
        self.vfs.attributes.size(file)
    }

    /// Sets the size; blocks beyond a smaller one are freed.
    pub fn set_inode_size_pages(&mut self, env: &Env, file: FileId, pages: u32) {
        debug_assert!(!self.vfs.rec(file).has(FileRec::DIR));
        let old = self.vfs.attributes.size(file);
        self.vfs.attributes.set_size(file, pages);
        if pages < old {
            let disk_size = self.vfs.attributes.disk_size(file);
            self.vfs.attributes.set_disk_size(file, disk_size.min(pages));
            self.note_truncated(env, file, pages);
            self.vfs.free_blocks(file, pages);
            self.vfs.log_leaf(file);
        }
        if pages != old {
            self.log_inode(file);
        }
    }

    /// Charges a `write()` to a file what it takes beside its entry and its pages.
    pub fn charge_write_call(&mut self, file: FileId) {
        let xfs = self.map_xfs(file, XfsWriteMap::Calls);
        self.charge(self.costs.write_call + self.by_fs(file, xfs, 0));
    }

    /// The cost of blocks for what is written to a file of XFS, if that is looked up for such parts.
    pub(crate) fn map_xfs(&self, file: FileId, parts: XfsWriteMap) -> u64 {
        if self.rules.xfs_write_map != parts {
            return 0;
        }
        // A larger file has blocks reserved ahead.
        let ahead = self.vfs.attributes.size(file) >= self.vfs.spec_of(file).prealloc_from_pages;
        self.costs.write_xfs + if ahead { 0 } else { self.costs.reserve_xfs }
    }

    /// The cost that is that of the file's file system.
    pub(crate) fn by_fs(&self, file: FileId, xfs: u64, ext4: u64) -> u64 {
        match self.fs_kind(file) {
            FsKind::Xfs => xfs,
            FsKind::Ext4 => ext4,
        }
    }

    /// Mounted file systems of a kind.
    pub fn vfs_file_systems(&self, kind: FsKind) -> Vec<FsId> {
        (0..self.vfs.fs.len() as u8).map(FsId).filter(|fs| self.vfs_kind(*fs) == kind).collect()
    }

    /// Device of a file system.
    pub fn vfs_device(&self, fs: FsId) -> u16 {
        self.vfs.fs[fs.0 as usize].spec.device
    }

    /// What kind a file system is.
    pub fn vfs_kind(&self, fs: FsId) -> FsKind {
        self.vfs.fs[fs.0 as usize].spec.kind
    }

    /// The file system that the file lies on.
    pub(crate) fn fs_id(&self, file: FileId) -> FsId {
        self.vfs.fs_of(file)
    }

    /// What kind of file system the file lies on.
    pub(crate) fn fs_kind(&self, file: FileId) -> FsKind {
        self.vfs.spec_of(file).kind
    }

    /// Device that the file lies on.
    pub fn device_of(&self, file: FileId) -> u16 {
        self.vfs.spec_of(file).device
    }

    /// Notes that a change of the inode is in the log and not on disk.
    pub(super) fn log_inode(&mut self, file: FileId) {
        let (fs, ino) = (self.vfs.fs_of(file), self.vfs.attributes.ino(file));
        if ino != NONE {
            self.vfs.fs_mut(fs).log_inode(ino);
        }
    }
}
