//! Slab caches (SLUB).

/// A slab cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheId(pub u16);

/// An object of a cache: dense, so that it takes four bytes wherever it is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Obj(pub u32);

/// All slab caches.
#[derive(Debug)]
pub struct Slabs {}
