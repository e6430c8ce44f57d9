//! Buffer heads: what says where the blocks of a page are.
//!
//! Rule: on ext4, and on XFS where [`XfsBuffers`] says so, a page that is written gets a `buffer_head` for its block, which
//! lives as long as the page is in its file; a page that is only read gets none. Where its block is, it is told as it gets it.
//! Source: `create_empty_buffers()`, `try_to_free_buffers()`, `block_invalidate_folio()` (fs/buffer.c), `ext4_block_write_begin()`,
//! `ext4_page_mkwrite()` (fs/ext4/inode.c), `buffer_migrate_folio()` (mm/migrate.c), 6.12.
//! Abstracted: blocks of 4 KiB, one head a page.
//! Omitted: freeing the heads of pages that stay (`buffer_heads_over_limit`).

use rules::XfsBuffers;
use units::{Gfp, Pfn};

use crate::slab::CacheId;
use crate::vfs::{FsKind, Need};
use crate::{Env, Mm};

impl Mm {
    /// Gives a page of a file, which is about to be written, its buffer head if it needs one.
    pub(crate) fn attach_buffers(&mut self, env: &Env, pfn: Pfn) -> Result<(), Need> {
        let (file, index) = self.file_home(pfn);
        let with_buffers = match self.fs_kind(file) {
            FsKind::Ext4 => true,
            FsKind::Xfs => self.rules.xfs_buffers == XfsBuffers::BufferHeads,
        };
        if !with_buffers {
            return Ok(());
        }
        if self.has_buffers(pfn) {
            return Ok(());
        }
        let cache = CacheId::BUFFER_HEAD;
        self.memcg_reserve_object(env, cache, Gfp::NOFS)?;
        let head = self.slab_alloc(env, cache, Gfp::NOFS).map_err(|request| Need::Slab(cache, request))?;
        self.pagecache.buffers.set(pfn.0, head);
        self.note_write(env, file, index);
        Ok(())
    }

    /// Whether a page has a buffer head.
    #[inline]
    pub(crate) fn has_buffers(&self, pfn: Pfn) -> bool {
        self.pagecache.buffers.get(pfn.0).is_some()
    }

    /// The page leaves its file, or has to do without.
    #[inline]
    pub(crate) fn free_buffers(&mut self, env: &Env, pfn: Pfn) {
        let head = self.pagecache.buffers.take(pfn.0);
        if head.is_some() {
            self.slab_free(env, CacheId::BUFFER_HEAD, head);
            self.charge(self.costs.free_buffer);
        }
    }

    /// The page's file gives up its block: the buffer is cleared before it is freed.
    pub(super) fn discard_buffers(&mut self, pfn: Pfn) {
        if self.has_buffers(pfn) {
            self.charge(self.costs.discard_buffer);
        }
    }

    /// Migration: `new` takes over what `old` has.
    pub(super) fn move_buffers(&mut self, old: Pfn, new: Pfn) {
        let buffers = &mut self.pagecache.buffers;
        let moved = buffers.take(old.0);
        let before = buffers.set(new.0, moved);
        buffers.set(old.0, before);
    }
}
