//! Inodes, dentries and file system metadata in memory, and their shrinkers.

use units::FileId;

use crate::slab::CacheId;
use crate::{AllocRequest, Bio};

/// What an operation lacks before it can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// A page for the caller's own use.
    Page(AllocRequest),
    /// A page for a slab cache: allocate it, give it to `slab_add_page`, repeat.
    Slab(CacheId, AllocRequest),
    /// Data from a device: submit, wait for its end, repeat.
    Read(Bio),
}

/// What can be shrunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ShrinkerId {
    /// Unused dentries.
    Dentry,
    /// Unused inodes.
    Inode,
    /// XFS inodes that the VFS has let go.
    XfsInode,
    /// XFS metadata buffers.
    XfsBuf,
    /// Radix tree nodes that hold only shadow entries.
    ShadowNodes,
}

/// What one call of a shrinker did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scanned {
    /// Objects looked at.
    pub scanned: u64,
    /// Objects freed.
    pub freed: u64,
}

/// Inodes, dentries and metadata of all file systems.
#[derive(Debug, Default)]
pub struct Vfs {}

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
