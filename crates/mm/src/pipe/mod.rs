//! Pipes: what they hold in memory.
//!
//! Rule: a pipe has 16 buffers, each of a page. The bytes of a write beyond whole pages go behind those in the last page if there is room for
//! all of them; each further 4096 bytes take the page that the pipe keeps, or a new one, which is neither movable nor zeroed. A write that finds
//! all buffers taken waits. A read takes bytes in their order; a page that it empties is kept if none is, else freed. A pipe itself is an
//! inode, a dentry, an open file for each end, a `pipe_inode_info` and the array of its buffers, which go with the last that refers to either end.
//! Source: `pipe_write()`, `pipe_read()`, `anon_pipe_buf_release()`, `alloc_pipe_info()`, `free_pipe_info()`, `create_pipe_files()`, fs/pipe.c;
//! 2.6.39, 4.20 and 6.12. Sizes, computed from include/linux/pipe_fs_i.h: 136 (4.20) to 176 bytes (6.12) of `pipe_inode_info`, 16 times 40 of
//! `pipe_buffer`.
//! Since/until: [`PipeRead`]. Pages belong to the writer's memory cgroup (`__GFP_ACCOUNT`, d86133bd396f, 4.8); older kernels have no cgroups here.
//! Abstracted: a writer holds no lock while it waits for a page, so that others may write and read meanwhile; a page that turns out not to be
//! needed is given back. `pipe_inode_info` and its array are not charged to a group, as no kmalloc is (slab/caches.rs), and
//! that of 2.6.39 takes as much as later ones. A pipe takes what two files take for their opening and closing.
//! Omitted: other sizes (`F_SETPIPE_SZ`, `pipe-user-pages-soft`), packets, `splice()`, FIFOs, times of the inode.

mod check;
mod ring;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rules::PipeRead;
use units::{Gfp, Order, PAGE_SIZE, Pfn};

use crate::memcg::KernelPage;
use crate::slab::{CacheId, Obj};
use crate::vfs::Need;
use crate::{AllocRequest, Env, Kind, Mm};
use ring::Ring;

/// Slab objects of a pipe, in the order of their allocation: the open files of its two ends come last.
const OBJECTS: &[(CacheId, u32)] = &[
    (CacheId::INODE, 1),
    (CacheId::KMALLOC_192, 1),
    (CacheId::KMALLOC_1K, 1),
    (CacheId::DENTRY, 1),
    (CacheId::FILP, 2),
];
/// What security modules keep of its inode, where they do.
const SECURITY: &[(CacheId, u32)] = &[(CacheId::LSM_INODE, 1)];
/// How its pages are allocated.
const PIPE_PAGE: Gfp = Gfp::HIGHUSER.with(Gfp::ACCOUNT);

/// A pipe; no two have the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PipeId(pub u32);

/// An end of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PipeEnd {
    /// It is read from.
    Read,
    /// It is written to.
    Write,
}

impl PipeEnd {
    /// Both.
    pub const ALL: [PipeEnd; 2] = [PipeEnd::Read, PipeEnd::Write];

    /// The other one.
    #[must_use]
    pub fn other(self) -> PipeEnd {
        match self {
            PipeEnd::Read => PipeEnd::Write,
            PipeEnd::Write => PipeEnd::Read,
        }
    }
}

/// Slab objects that a pipe to be made has so far.
#[derive(Debug, Default)]
pub struct PipeObjects(Vec<(CacheId, Obj)>);

/// A pipe of which at least one end is open.
#[derive(Debug)]
struct Pipe {
    ring: Ring,
    /// Who refers to each end.
    users: [u32; 2],
    /// Writers that wait (`waiting_writers`).
    waiting_writers: u32,
    objects: Vec<(CacheId, Obj)>,
}

/// All pipes.
#[derive(Debug, Default)]
pub struct Pipes {
    list: BTreeMap<PipeId, Pipe>,
    /// Pipes that were made so far.
    made: u32,
}

impl Pipes {
    /// Whether an end of the pipe is open.
    pub fn is_open(&self, pipe: PipeId) -> bool {
        self.list.contains_key(&pipe)
    }

    /// Pipes that are open.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether anybody refers to an end.
    pub fn has_user(&self, pipe: PipeId, end: PipeEnd) -> bool {
        self.of(pipe).users[end as usize] > 0
    }

    /// Another one refers to an end that is open.
    pub fn hold(&mut self, pipe: PipeId, end: PipeEnd) {
        let users = &mut self.of_mut(pipe).users[end as usize];
        debug_assert!(*users > 0, "{pipe:?} {end:?} is closed");
        *users += 1;
    }

    /// A writer begins to wait, or has ended.
    pub fn writer_waits(&mut self, pipe: PipeId, begins: bool) {
        let waiting = &mut self.of_mut(pipe).waiting_writers;
        *waiting = if begins { *waiting + 1 } else { *waiting - 1 };
    }

    fn of(&self, pipe: PipeId) -> &Pipe {
        self.list.get(&pipe).expect("who refers to a pipe keeps it open")
    }

    fn of_mut(&mut self, pipe: PipeId) -> &mut Pipe {
        self.list.get_mut(&pipe).expect("who refers to a pipe keeps it open")
    }

    /// Host bytes.
    pub fn host_bytes(&self) -> usize {
        let of_pipe = |pipe: &Pipe| pipe.ring.host_bytes() + pipe.objects.capacity() * size_of::<(CacheId, Obj)>();
        self.list.values().map(|pipe| size_of::<(PipeId, Pipe)>() + of_pipe(pipe)).sum()
    }
}

/// A write to a pipe.
#[derive(Debug)]
pub struct PipeWrite {
    pipe: PipeId,
    /// Bytes to be written yet.
    left: u64,
    /// The last page has taken what it has room for.
    begun: bool,
    /// A page from the slow path.
    pub hand: Option<Pfn>,
}

impl PipeWrite {
    /// A write of so many bytes.
    pub fn new(pipe: PipeId, length: u64) -> PipeWrite {
        PipeWrite { pipe, left: length, begun: false, hand: None }
    }
}

/// How far a write came.
#[derive(Clone, PartialEq, Debug)]
pub enum PipeWriteStop {
    /// All is written.
    Done,
    /// Nobody will read it (`EPIPE`).
    NoReader,
    /// All buffers are taken: wait for a reader, and repeat.
    Full,
    /// This is missing; a page goes into the write's hand.
    Need(Need),
}

/// What a read found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PipeBytes {
    /// Bytes, of those wanted.
    pub bytes: u64,
    /// Whether they have left a buffer empty, so that there is room for a writer.
    pub emptied: bool,
}

impl Mm {
    /// Makes a pipe with one user of each end, going on where an earlier call stopped.
    ///
    /// # Errors
    /// What is missing: provide it and repeat, or [`Mm::pipe_give_up`].
    pub fn pipe_create(&mut self, env: &Env, objects: &mut PipeObjects) -> Result<PipeId, Need> {
        let security = if self.rules.struct_sizes.secures_inodes() { SECURITY } else { &[] };
        self.kernel_objects(env, &mut objects.0, 0, security)?;
        self.kernel_objects(env, &mut objects.0, security.len(), OBJECTS)?;
        self.charge(2 * self.costs.open_close);
        let id = PipeId(self.pipes.made);
        self.pipes.made += 1;
        let objects = std::mem::take(&mut objects.0);
        self.pipes.list.insert(id, Pipe { ring: Ring::default(), users: [1; 2], waiting_writers: 0, objects });
        Ok(id)
    }

    /// Gives back what was allocated for a pipe that is not made after all.
    pub fn pipe_give_up(&mut self, env: &Env, objects: PipeObjects) {
        self.free_pipe_objects(env, objects.0);
    }

    /// A user of an end is gone; says whether the end is closed now.
    pub fn pipe_put(&mut self, env: &Env, id: PipeId, end: PipeEnd) -> bool {
        let pipe = self.pipes.of_mut(id);
        pipe.users[end as usize] -= 1;
        if pipe.users[end as usize] > 0 {
            return false;
        }
        if pipe.users[end.other() as usize] > 0 {
            let (cache, file) = pipe.objects.pop().expect("it has an open file for each end");
            self.slab_free(env, cache, file);
        } else {
            self.free_pipe(env, id);
        }
        true
    }

    /// Frees a pipe with what it holds.
    fn free_pipe(&mut self, env: &Env, id: PipeId) {
        let Pipe { ring, objects, .. } = self.pipes.list.remove(&id).expect("it was open");
        for page in ring.pages() {
            self.free_pipe_page(env, page);
        }
        self.free_pipe_objects(env, objects);
    }

    /// Frees objects of a pipe: those of its inode after a grace period.
    fn free_pipe_objects(&mut self, env: &Env, objects: Vec<(CacheId, Obj)>) {
        for (cache, obj) in objects.into_iter().rev() {
            match cache {
                CacheId::INODE | CacheId::LSM_INODE => self.slab_free_rcu(env, cache, obj),
                _ => self.slab_free(env, cache, obj),
            }
        }
    }

    fn free_pipe_page(&mut self, env: &Env, page: Pfn) {
        self.memcg_forget_kernel(page, KernelPage::Pipe);
        self.frames[page].set_kind(Kind::Held, Order(0));
        self.free_pages(env, page, Order(0));
    }

    /// Writes until all is done, there is no room, or something is missing; goes on where an earlier call stopped.
    pub fn pipe_write(&mut self, env: &Env, write: &mut PipeWrite) -> PipeWriteStop {
        if !self.pipes.has_user(write.pipe, PipeEnd::Read) {
            return PipeWriteStop::NoReader;
        }
        if !std::mem::replace(&mut write.begun, true) {
            let merged = self.pipes.of_mut(write.pipe).ring.merge(write.left);
            self.charge_user_copy(merged);
            write.left -= merged;
        }
        while write.left > 0 {
            if self.pipes.of(write.pipe).ring.is_full() {
                return PipeWriteStop::Full;
            }
            let page = match self.page_for_pipe(env, write) {
                Ok(page) => page,
                Err(need) => return PipeWriteStop::Need(need),
            };
            let written = self.pipes.of_mut(write.pipe).ring.push(page, write.left);
            self.charge_user_copy(written);
            write.left -= written;
        }
        PipeWriteStop::Done
    }

    /// A page for the next buffer: that which is kept, or a new one.
    fn page_for_pipe(&mut self, env: &Env, write: &mut PipeWrite) -> Result<Pfn, Need> {
        if let Some(page) = self.pipes.of_mut(write.pipe).ring.take_spare() {
            return Ok(page);
        }
        let request = AllocRequest { gfp: PIPE_PAGE, order: Order(0), node: env.node };
        self.memcg_reserve(env, env.task.memcg, Order(0), PIPE_PAGE)?;
        let page = write.hand.take().or_else(|| self.alloc_pages(env, request)).ok_or(Need::Page(request))?;
        self.frames[page].set_kind(Kind::Kernel, Order(0));
        self.memcg_commit_kernel(env, page, KernelPage::Pipe);
        Ok(page)
    }

    /// Reads what there is, so many bytes at most.
    pub fn pipe_read(&mut self, env: &Env, id: PipeId, wanted: u64) -> PipeBytes {
        let mut read = PipeBytes { bytes: 0, emptied: false };
        while read.bytes < wanted {
            let ring = &mut self.pipes.of_mut(id).ring;
            let (bytes, empty) = ring.read(wanted - read.bytes);
            if bytes == 0 {
                break;
            }
            self.charge_user_copy(bytes);
            read.bytes += bytes;
            read.emptied |= empty.is_some();
            if let Some(page) = empty.and_then(|page| self.pipes.of_mut(id).ring.keep(page)) {
                self.free_pipe_page(env, page);
            }
        }
        read
    }

    /// Whether a read that has so many of the bytes that it wants, and finds no more, waits for more.
    pub fn pipe_read_waits(&self, id: PipeId, done: u64, wanted: u64) -> bool {
        let for_writer = self.rules.pipe_read == PipeRead::WaitsForWriters && self.pipes.of(id).waiting_writers > 0;
        done < wanted && self.pipes.has_user(id, PipeEnd::Write) && (done == 0 || for_writer)
    }

    /// Charges the copy of some bytes.
    fn charge_user_copy(&mut self, bytes: u64) {
        self.charge(self.costs.copy_page * bytes / PAGE_SIZE);
    }
}
