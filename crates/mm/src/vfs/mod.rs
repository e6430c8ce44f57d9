//! Inodes, dentries and file system metadata in memory, and their shrinkers.
//!
//! Rule: a file on disk (a [`FileId`]) has an inode and a dentry in memory from its first use until shrinkers take
//! them. The dentry keeps the inode; an unused dentry is on the LRU of its node, and when it goes the inode is put on
//! the LRU of its own. An inode that XFS evicts is reclaimable, and freed by the same shrinker or every 5 seconds.
//! Source: fs/dcache.c, fs/inode.c, fs/super.c, fs/xfs/xfs_icache.c, fs/xfs/xfs_buf.c, 4.20 and 6.12.
//! Abstracted: names (a file is what it is from creation to unlink); one superblock shrinker for all file systems;
//! who waits for a metadata read (a second reader of the same block does not).
//! Omitted: hard links, rename, quotas, attributes, a root directory's objects
//! in memory, log items of files that were not created in the run, references that writeback takes.

mod ail;
mod attributes;
mod bdev;
mod block_map;
mod buffer;
mod buffer_item;
mod check;
mod checksums;
mod cil;
mod credits;
mod dentry;
mod disk;
mod efi;
mod extent_status;
mod extent_tree;
mod extents;
mod htree;
mod iext;
mod inode;
mod jbd2;
mod log_room;
mod names;
mod namespace;
mod orlov;
mod packed;
mod rmdir;
mod shrink;
mod space;
mod spec;
mod status_shrink;
mod statuses;
#[cfg(test)]
mod tests;
mod times;

use units::{FileId, Gfp, MemcgId, NodeId, Pfn, table};

use crate::links::{IdList, Links, NONE};
use crate::memcg::Uncharged;
use crate::near::{Near, NearObjs};
use crate::pool::Block;
use crate::slab::{CacheId, Obj, SlabRequest};
use crate::sparse::Sparse;
use crate::{AllocRequest, Bio};
use attributes::{AttributeTable, Attributes};
pub use block_map::OrderedStep;
use buffer::Buffer;
pub(crate) use checksums::Change;
pub use cil::Logged;
use disk::Fs;
use extents::Extents;
use htree::Htree;
pub use jbd2::CommitId;
pub use rmdir::Rmdir;
pub use shrink::{SHRINKERS, ShrinkerId, ShrinkerSpec};
pub use spec::{FsKind, FsSpec};
use statuses::Statuses;

/// What an operation lacks before it can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// A page for the caller's own use; from a vfs operation: allocate it, give it to `vfs_add_page`, repeat.
    Page(AllocRequest),
    /// Pages for a slab cache: allocate them, give them to `slab_add_page`, repeat.
    Slab(CacheId, SlabRequest),
    /// Data from a device: submit, wait for its end, repeat.
    Read(Bio),
    /// Room below the limit of a memory cgroup: reclaim from it, and repeat.
    Charge(Uncharged),
    /// What is being written to the journal is to be there first: wait for that, repeat.
    Journal,
    /// A page of metadata is to be on the device first: wait until it is neither locked nor under writeback, repeat.
    Written(Pfn),
    /// Nothing: who was woken may take the CPU first; repeat.
    Resched,
    /// Blocks on the device: have `vfs_free_preallocations` free some and repeat, or give up (`ENOSPC`).
    Space,
}

impl Need {
    /// The same need; reclaim for a charge is tried only once if so.
    pub(crate) fn with_noretry(self, noretry: bool) -> Need {
        match self {
            Need::Charge(charge) => Need::Charge(Uncharged { noretry, ..charge }),
            other => other,
        }
    }

    /// Whether it is memory that its user can do without: readahead ends, a write makes do with a smaller folio.
    pub fn is_optional(&self) -> bool {
        match self {
            Need::Page(request) => request.gfp.contains(Gfp::NORETRY),
            Need::Slab(_, request) => request.fallback.unwrap_or(request.pages).gfp.contains(Gfp::NORETRY),
            Need::Charge(charge) => charge.is_optional(),
            Need::Read(_) | Need::Journal | Need::Written(_) | Need::Resched | Need::Space => false,
        }
    }
}

/// What one call of a shrinker did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scanned {
    /// Objects looked at; none is `SHRINK_STOP`.
    pub scanned: u64,
    /// Objects freed.
    pub freed: u64,
    /// Evicted inodes that XFS is to go over now ([`Mm::reclaim_evicted`]).
    pub evicted: u64,
}

/// Objects of a node that are charged to one memory cgroup: what one call of a shrinker is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The node of their pages.
    pub node: NodeId,
    /// The group.
    pub memcg: MemcgId,
}

impl Share {
    /// Place in a table by share, on a machine of so many nodes.
    pub(crate) fn index(self, nodes: usize) -> usize {
        usize::from(self.memcg.0) * nodes + self.node.index()
    }
}

/// A directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirId(pub u32);

/// A mounted file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FsId(pub u8);

/// Where a file's page lies on its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Device number.
    pub device: u16,
    /// First sector (512 B) of the page.
    pub sector: u64,
    /// Pages that follow contiguously, this one included.
    pub pages: u32,
}

/// A file as a caller names it.
pub type File = FileId;

/// An open file (`struct file`); given back to `vfs_close`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    /// The file.
    pub file: FileId,
    filp: Obj,
}

/// Open files by number, some of them free: those that were opened one after the other are near each other.
#[derive(Debug, Default)]
pub struct Handles {
    files: Near,
    filps: NearObjs,
}

impl Handles {
    /// The file of an open file.
    #[inline]
    pub fn file(&self, number: u32) -> Option<FileId> {
        self.files.get(number).map(FileId)
    }

    /// Whether an open file has the number.
    #[inline]
    pub fn is_open(&self, number: u32) -> bool {
        self.files.has(number)
    }

    /// Puts an open file there.
    pub fn set(&mut self, number: u32, handle: Handle) {
        self.files.set(number, Some(handle.file.0));
        self.filps.set(number, handle.filp);
    }

    /// Takes an open file.
    pub fn take(&mut self, number: u32) -> Option<Handle> {
        let file = self.files.set(number, None).map(FileId)?;
        Some(Handle { file, filp: self.filps.take(number) })
    }

    /// Host bytes.
    pub fn host_bytes(&self) -> usize {
        self.files.host_bytes() + self.filps.host_bytes()
    }
}

/// One file: where its blocks are, and what is in memory of it; 20 bytes beside its [`Attributes`].
#[derive(Clone, Copy, Debug)]
struct FileRec {
    /// In memory: the dentry, the inode, the extent records, whose place is in ext4 that of the list of entries
    /// (statuses.rs).
    dentry: Obj,
    inode: Obj,
    extents: Obj,
    /// Its extents beside the first one.
    more: Block,
    flags: u32,
}

impl FileRec {
    /// Is a directory.
    const DIR: u32 = 1 << 0;
    /// Its dentry is on an LRU list; referenced since last looked at.
    const DENTRY_LRU: u32 = 1 << 1;
    const DENTRY_REF: u32 = 1 << 2;
    /// Its inode is on an LRU list; referenced since last looked at.
    const INODE_LRU: u32 = 1 << 3;
    const INODE_REF: u32 = 1 << 4;
    /// Has dirty pages.
    const DIRTY: u32 = 1 << 5;
    /// The VFS has let the inode go; XFS has not freed it yet.
    const RECLAIMABLE: u32 = 1 << 6;
    /// Has no name any more.
    const UNLINKED: u32 = 1 << 7;
    /// The record is in use.
    const LIVE: u32 = 1 << 8;
    /// Root of its file system: always in memory.
    const ROOT: u32 = 1 << 9;
    /// Unlinked while open: the dentry goes with the last close instead of staying as a negative one.
    const UNHASHED: u32 = 1 << 10;
    /// Its inode is being evicted (`I_FREEING`).
    const FREEING: u32 = 1 << 11;
    /// Was read since it was last modified: its access time is newer than the time of its last change.
    const ATIME: u32 = 1 << 12;
    /// A name that was looked up and does not exist; at most a dentry.
    const NEGATIVE: u32 = 1 << 13;
    /// Changed in the checkpoint that is being collected; pinned until that is written.
    const IN_CIL: u32 = 1 << 14;
    /// No file, but the device of its file system: the page cache of its blocks.
    const BDEV: u32 = 1 << 15;
    /// ext4: it is on the list of those that have an entry of `extent_status` which can be freed.
    const STATUS_LISTED: u32 = 1 << 16;
    /// XFS: the vector in reserve, that of the checkpoint, has room for extents.
    const SHADOW_LARGE: u32 = 1 << 19;
    const VECTOR_LARGE: u32 = 1 << 20;
    /// XFS: it got unwritten blocks in front of the end that it has on disk.
    const FILLED_HOLE: u32 = 1 << 21;
    /// XFS: which size the array of its extents has (iext.rs), in three bits.
    const ARRAY_SIZE: u32 = 0b111 << Self::ARRAY_SHIFT;
    const ARRAY_SHIFT: u32 = 22;
    /// Is open; with the children in memory, what keeps its dentry in use.
    const OPEN: u32 = 1 << 25;

    /// The file system, one of 64.
    const FS_SHIFT: u32 = 26;

    const UNUSED: FileRec =
        FileRec { dentry: Obj::NONE, inode: Obj::NONE, extents: Obj::NONE, more: Block::NONE, flags: 0 };

    #[inline]
    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Index of the size that the array of its extents has.
    fn array_size(&self) -> u32 {
        (self.flags & FileRec::ARRAY_SIZE) >> FileRec::ARRAY_SHIFT
    }

    fn set_array_size(&mut self, index: u32) {
        self.flags = self.flags & !FileRec::ARRAY_SIZE | index << FileRec::ARRAY_SHIFT;
    }

    #[inline]
    fn set(&mut self, flag: u32, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}

/// One block of a directory.
#[derive(Clone, Copy, Debug)]
struct DirBlock {
    block: u32,
    /// Its buffer in memory.
    buffer: u32,
    /// New: nothing is on disk to be read.
    fresh: bool,
    dirty: bool,
}

/// One directory.
#[derive(Debug)]
struct Dir {
    fs: FsId,
    file: FileId,
    /// Allocation group of its files, and where its last directory went.
    ag: u32,
    last_dir: u32,
    /// Dentries in memory below it.
    children: u32,
    /// Names below it that stand for nothing: removed, if their dentry is in memory, or looked up in vain.
    gone: IdList,
    /// Places for names used so far, and those that are free again.
    dirents: u32,
    free_dirents: Vec<u32>,
    blocks: Vec<DirBlock>,
    /// ext4: which of these a name is in, and those that the place for the next name changed beside its own.
    index: Htree,
    split: Vec<u32>,
}

/// Inodes, dentries and metadata of all file systems.
#[derive(Debug, Default)]
pub struct Vfs {
    files: Vec<FileRec>,
    attributes: AttributeTable,
    /// Records of files that are gone.
    unused_files: Vec<u32>,
    extents: Extents,
    /// What security modules keep of inodes in memory, by file.
    security: NearObjs,
    /// The log item of an inode that was changed since it is in memory, or ext4's `jbd2_inode`.
    items: NearObjs,
    /// XFS: the vector in reserve for the log item of a file (`li_lv_shadow`).
    shadows: NearObjs,
    /// The vector that the checkpoint being collected has of a file (`li_lv`).
    vectors: NearObjs,
    /// Open files of a file beside the first one.
    more_opens: Sparse<u16>,
    dirs: Vec<Dir>,
    fs: Vec<Fs>,
    buffers: Vec<Buffer>,
    unused_buffers: Vec<u32>,
    /// Pages that callers gave for buffers.
    spare_pages: Vec<Pfn>,
    nodes: usize,
    /// By share.
    dentry_lru: Vec<IdList>,
    inode_lru: Vec<IdList>,
    /// By node.
    buffer_lru: Vec<IdList>,
    /// Evicted XFS inodes, oldest first.
    reclaimable: Option<IdList>,
    /// Neighbours of dentries and of inodes on these lists, by file.
    dentry_links: Links,
    inode_links: Links,
    /// Neighbours of those on the lists of directories that stand for nothing.
    gone_links: Links,
    /// Entries of ext4's `extent_status`.
    statuses: Statuses,
    nr_dentries: u64,
    nr_inodes: u64,
    timed: times::Timed,
}

impl Vfs {
    /// Dentries in memory, negative ones included, and inodes in memory, reclaimable ones included.
    pub fn cached(&self) -> (u64, u64) {
        (self.nr_dentries, self.nr_inodes)
    }

    /// Open files of all processes.
    pub fn open_files(&self) -> u64 {
        let first = self.files.iter().filter(|rec| rec.has(FileRec::OPEN)).count() as u64;
        first + self.more_opens.iter().map(|(_, opens)| u64::from(*opens)).sum::<u64>()
    }

    /// Dentries on LRU lists (`nr_unused` of dentry-state, with those that are in use again and still listed).
    pub fn unused_dentries(&self) -> u64 {
        self.dentry_lru.iter().map(|l| u64::from(l.len())).sum()
    }

    /// Inodes on LRU lists.
    pub fn unused_inodes(&self) -> u64 {
        self.inode_lru.iter().map(|l| u64::from(l.len())).sum()
    }

    /// Evicted XFS inodes that are not freed yet.
    pub fn reclaimable_inodes(&self) -> u64 {
        self.reclaimable.map_or(0, |l| u64::from(l.len()))
    }

    /// Metadata buffers in memory.
    pub fn buffers(&self) -> usize {
        self.buffers.len() - self.unused_buffers.len()
    }

    /// Host bytes that all tables occupy.
    pub fn host_bytes(&self) -> usize {
        let dir = |d: &Dir| {
            let numbers = (d.free_dirents.capacity() + d.split.capacity()) * size_of::<u32>();
            d.blocks.capacity() * size_of::<DirBlock>() + numbers + d.index.host_bytes()
        };
        self.files.capacity() * size_of::<FileRec>()
            + self.unused_files.capacity() * size_of::<u32>()
            + self.attributes.host_bytes()
            + self.extents.host_bytes()
            + self.statuses.host_bytes()
            + self.security.host_bytes()
            + self.items.host_bytes()
            + self.timed.host_bytes()
            + self.shadows.host_bytes()
            + self.vectors.host_bytes()
            + self.more_opens.host_bytes()
            + self.dentry_links.host_bytes()
            + self.inode_links.host_bytes()
            + self.gone_links.host_bytes()
            + self.buffers.capacity() * size_of::<Buffer>()
            + self.unused_buffers.capacity() * 4
            + self.dirs.iter().map(dir).sum::<usize>()
            + self.fs.iter().map(Fs::host_bytes).sum::<usize>()
    }

    /// Place of a share's lists, which are made if they are missing.
    fn lists_of(&mut self, share: Share) -> usize {
        let at = share.index(self.nodes);
        if at >= self.dentry_lru.len() {
            self.dentry_lru.resize(at + 1, IdList::EMPTY);
            self.inode_lru.resize(at + 1, IdList::EMPTY);
        }
        at
    }

    /// A file is opened.
    fn add_open(&mut self, file: FileId) {
        let rec = self.rec_mut(file);
        if !rec.has(FileRec::OPEN) {
            rec.flags |= FileRec::OPEN;
            return;
        }
        let more = self.more_opens.get(file.0).checked_add(1).expect("at most 65536 opens of a file");
        self.more_opens.set(file.0, more);
    }

    /// A file is closed; says whether it is open still.
    fn remove_open(&mut self, file: FileId) -> bool {
        let more = self.more_opens.get(file.0);
        if more > 0 {
            self.more_opens.set(file.0, more - 1);
            return true;
        }
        let rec = self.rec_mut(file);
        debug_assert!(rec.has(FileRec::OPEN), "a handle is closed once");
        rec.flags &= !FileRec::OPEN;
        false
    }

    fn rec(&self, file: FileId) -> &FileRec {
        &self.files[file.index()]
    }

    fn rec_mut(&mut self, file: FileId) -> &mut FileRec {
        &mut self.files[file.index()]
    }

    fn dir_of(&self, file: FileId) -> Option<&Dir> {
        self.rec(file).has(FileRec::DIR).then(|| &self.dirs[self.attributes.size(file) as usize])
    }

    fn fs_of(&self, file: FileId) -> FsId {
        FsId((self.rec(file).flags >> FileRec::FS_SHIFT) as u8)
    }

    /// What is mounted from a device.
    pub fn kind_on(&self, device: u16) -> Option<FsKind> {
        self.fs_on(device).map(|FsId(fs)| self.fs[fs as usize].spec.kind)
    }

    fn fs_on(&self, device: u16) -> Option<FsId> {
        (0..).zip(&self.fs).find(|(_, fs)| fs.spec.device == device).map(|(number, _)| FsId(number))
    }

    pub(crate) fn spec_of(&self, file: FileId) -> &FsSpec {
        &self.fs[self.fs_of(file).0 as usize].spec
    }

    /// Makes a record for a new file.
    fn new_file(&mut self, fs: FsId, rec: FileRec, attributes: Attributes) -> FileId {
        let rec = FileRec { flags: rec.flags | FileRec::LIVE | u32::from(fs.0) << FileRec::FS_SHIFT, ..rec };
        let file = match self.unused_files.pop() {
            Some(id) => {
                self.files[id as usize] = rec;
                FileId(id)
            }
            None => {
                table::push(&mut self.files, rec);
                FileId(self.files.len() as u32 - 1)
            }
        };
        self.attributes.set(file, attributes);
        file
    }

    /// Gives the record of an unlinked file back once nothing of it is in memory.
    fn release_file(&mut self, file: FileId) {
        let rec = self.rec(file);
        if !rec.has(FileRec::UNLINKED) || rec.dentry.is_some() || rec.inode.is_some() {
            return;
        }
        debug_assert!(rec.flags & (FileRec::DENTRY_LRU | FileRec::INODE_LRU | FileRec::RECLAIMABLE) == 0);
        debug_assert!(!rec.has(FileRec::OPEN));
        // A write of its pages may end yet, and asks for the file system.
        let flags = u32::from(self.fs_of(file).0) << FileRec::FS_SHIFT;
        *self.rec_mut(file) = FileRec { flags, ..FileRec::UNUSED };
        table::push(&mut self.unused_files, file.0);
    }
}
