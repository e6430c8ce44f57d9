//! Pages leave the cache because their file shrinks or goes, or because nobody wants them.
//!
//! Rule: truncation drops every page and shadow from an index on, dirty or not. Invalidation drops clean pages that
//! nobody uses, and all shadows; a page that it cannot drop is moved to where reclaim finds it first.
//! Source: `truncate_inode_pages_range()`, `invalidate_mapping_pages()`, mm/truncate.c (4.20; 6.12).
//! Abstracted: truncation does not wait for pages under I/O: such a page leaves its file at once, and its frame is
//! freed when the I/O ends.

use units::{FileId, Pfn};

use super::{Slot, slots};
use crate::{Env, Frame, Kind, Mm};

impl Mm {
    /// Drops all pages and shadows of a file from page `from` on.
    pub fn truncate_pages(&mut self, env: &Env, file: FileId, from: u32) {
        self.truncate_partial_folio(env, file, from);
        let mut at = from;
        while let Some((index, raw)) = self.pagecache.trees.next_entry(file.0, at) {
            match slots::unpack(raw) {
                // One that could not be cut.
                Slot::Page(pfn) if self.folio_indices(pfn).start < from => {}
                Slot::Page(pfn) => self.truncate_page(env, pfn),
                _ => _ = self.pagecache.trees.erase(file.0, index),
            }
            let Some(next) = index.checked_add(1) else { break };
            at = next;
        }
        self.free_nodes(env);
        self.note_shadow_nodes();
        if from == 0 {
            self.forget_dirty_inode(file);
        }
    }

    fn truncate_page(&mut self, env: &Env, pfn: Pfn) {
        self.lru_add_drain(env);
        if self.frames[pfn].has(Frame::MAPPED) {
            self.unmap_file_page(pfn);
        }
        let frame = self.frames[pfn];
        debug_assert!(frame.kind() == Kind::File);
        self.account_cleaned(env, pfn);
        self.discard_buffers(pfn);
        let isolated = frame.has(Frame::ISOLATED);
        if isolated {
            self.lru_forget_isolated(pfn);
        } else if frame.has(Frame::LRU) {
            self.lru_del(pfn);
        }
        let busy = frame.has_any(Frame::WRITEBACK | Frame::LOCKED);
        if busy {
            self.orphan(env, pfn);
        } else {
            self.pagecache_remove(env, pfn, None);
        }
        if isolated {
            // Reclaim, which sleeps with it, gives it back.
            self.frames[pfn].set(Frame::ISOLATED);
        } else if !busy {
            self.free_pages(env, pfn, frame.order());
        }
    }

    /// Takes a page with I/O in flight out of its file.
    fn orphan(&mut self, env: &Env, pfn: Pfn) {
        let frame = self.frames[pfn];
        if frame.has(Frame::WRITEBACK) {
            self.record_end_writeback(pfn);
        }
        self.truncate_folio_io(pfn);
        self.frames[pfn].clear(Frame::WRITEBACK | Frame::LOCKED | Frame::RECLAIM);
        self.pagecache_remove(env, pfn, None);
        self.frames[pfn].set(frame_io_flags(&frame));
    }

    /// Frees an orphan whose I/O has ended, unless reclaim holds it.
    pub(crate) fn free_truncated(&mut self, env: &Env, pfn: Pfn) {
        self.wake_page(pfn);
        let (isolated, order) = (self.frames[pfn].has(Frame::ISOLATED), self.frames[pfn].order());
        self.frames[pfn].set_kind(Kind::Held, order);
        if isolated {
            self.frames[pfn].set(Frame::ISOLATED);
        } else {
            self.free_pages(env, pfn, order);
        }
    }

    /// Drops the clean unused pages of a file, and its shadows; says how many pages.
    pub fn invalidate_clean_pages(&mut self, env: &Env, file: FileId) -> u64 {
        let mut at = 0;
        let mut dropped = 0;
        while let Some((index, raw)) = self.pagecache.trees.next_entry(file.0, at) {
            match slots::unpack(raw) {
                Slot::Page(pfn) => {
                    let pages = self.folio_indices(pfn);
                    at = pages.end;
                    dropped += if self.invalidate_page(env, pfn) { pages.len() as u64 } else { 0 };
                }
                _ => {
                    self.pagecache.trees.erase(file.0, index);
                    let Some(next) = index.checked_add(1) else { break };
                    at = next;
                }
            }
        }
        self.free_nodes(env);
        self.note_shadow_nodes();
        dropped
    }

    fn invalidate_page(&mut self, env: &Env, pfn: Pfn) -> bool {
        if self.frames[pfn].has(Frame::PINNED) {
            self.release_buffer(env, pfn);
        }
        let frame = self.frames[pfn];
        if frame.has_any(Frame::LOCKED | Frame::ISOLATED | Frame::PINNED) {
            return false;
        }
        if frame.has_any(Frame::DIRTY | Frame::WRITEBACK | Frame::MAPPED) {
            self.deactivate_file_page(pfn);
            return false;
        }
        self.lru_del(pfn);
        self.pagecache_remove(env, pfn, None);
        self.free_pages(env, pfn, frame.order());
        true
    }
}

/// Flags of I/O in flight, and of who waits for it.
fn frame_io_flags(frame: &Frame) -> u32 {
    let flags = [Frame::WRITEBACK, Frame::LOCKED, Frame::WAITERS];
    flags.into_iter().filter(|&flag| frame.has(flag)).fold(0, |all, flag| all | flag)
}
