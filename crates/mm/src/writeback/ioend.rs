//! Writes that end as a whole.
//!
//! Rule: what XFS writes of a file in one go, a run of pages in one extent, is one ioend of as many bios as it takes; its pages
//! leave writeback with the last of them. What ext4 writes into blocks that it has just allocated is one `io_end` in the same way, if they are
//! unwritten till then; other pages leave writeback with their own bio.
//! Source: `xfs_add_to_ioend()`, `xfs_submit_ioend()`, `xfs_finish_ioend()`, `xfs_destroy_ioend()` (fs/xfs/xfs_aops.c, 3.1);
//! `ext4_end_bio()`, fs/ext4/page-io.c (6.12).
//! Since/until: [`IoendEnd`](rules::IoendEnd), [`DelayedBlocks`](rules::DelayedBlocks).
//! Abstracted: the worker of XFS, which ends all ioends until 3.1, ends those alone that change a file's size (end_io.rs).
//! Omitted: the ioend's own slab object.

use rules::IoendEnd;
use units::FileId;

use crate::vfs::FsKind;
use crate::{Bio, Env, Mm};

/// An ioend, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IoendId(u32);

impl IoendId {
    /// The bio ends by itself.
    pub(crate) const NONE: IoendId = IoendId(u32::MAX);

    fn is_some(self) -> bool {
        self != IoendId::NONE
    }
}

/// Pages of a file that leave writeback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WrittenRun {
    pub(super) file: FileId,
    pub(super) index: u32,
    pub(super) pages: u32,
    pub(super) device: u16,
    pub(super) ok: bool,
    /// Reserved for the conversion of its blocks; nothing if they are written ones.
    pub(super) credits: u32,
}

impl WrittenRun {
    fn of(bio: &Bio, file: FileId, ok: bool) -> WrittenRun {
        WrittenRun { file, index: bio.first_index(), pages: bio.pages, device: bio.device, ok, credits: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Ioend {
    run: WrittenRun,
    /// Bios that have not ended.
    bios: u32,
    /// More may be added.
    open: bool,
}

/// All ioends, with free places.
#[derive(Debug, Default)]
pub(super) struct Ioends {
    list: Vec<Ioend>,
    unused: Vec<u32>,
}

impl Ioends {
    /// Host bytes.
    pub(super) fn host_bytes(&self) -> usize {
        self.list.capacity() * size_of::<Ioend>() + self.unused.capacity() * 4
    }

    /// Takes an ioend's place back if it has ended.
    fn finish(&mut self, IoendId(id): IoendId) -> Option<WrittenRun> {
        let ioend = &self.list[id as usize];
        if ioend.open || ioend.bios > 0 {
            return None;
        }
        self.unused.push(id);
        Some(ioend.run)
    }
}

impl Mm {
    /// Whether the file's pages leave writeback with the last bio of a run, for whose end so much is reserved.
    pub(super) fn has_ioends(&self, file: FileId, credits: u32) -> bool {
        credits > 0 || (self.rules.ioend_end == IoendEnd::LastBio && self.fs_kind(file) == FsKind::Xfs)
    }

    /// Makes a bio that is about to be submitted part of an ioend, a new one if it is part of none.
    pub(super) fn add_to_ioend(&mut self, bio: &mut Bio, file: FileId, credits: u32) {
        let ioends = &mut self.writeback.ioends;
        if bio.memory.ioend.is_some() {
            let IoendId(id) = bio.memory.ioend;
            let ioend = &mut ioends.list[id as usize];
            debug_assert!(ioend.open && ioend.run.index + ioend.run.pages == bio.first_index());
            ioend.run.pages += bio.pages;
            ioend.bios += 1;
            return;
        }
        let run = WrittenRun { credits, ..WrittenRun::of(bio, file, true) };
        let ioend = Ioend { run, bios: 1, open: true };
        bio.memory.ioend = match ioends.unused.pop() {
            Some(id) => {
                ioends.list[id as usize] = ioend;
                IoendId(id)
            }
            None => {
                ioends.list.push(ioend);
                IoendId(ioends.list.len() as u32 - 1)
            }
        };
    }

    /// Nothing more is added to an ioend; its pages leave writeback if all its bios have ended.
    pub(super) fn close_ioend(&mut self, env: &Env, id: IoendId) {
        if id.is_some() {
            self.writeback.ioends.list[id.0 as usize].open = false;
            if let Some(run) = self.writeback.ioends.finish(id) {
                self.run_closed(env, run);
            }
        }
    }

    /// A bio has ended: the pages that leave writeback with it.
    pub(super) fn written_with(&mut self, bio: &Bio, file: FileId, ok: bool) -> Option<WrittenRun> {
        let id = bio.memory.ioend;
        if !id.is_some() {
            return Some(WrittenRun::of(bio, file, ok));
        }
        let ioend = &mut self.writeback.ioends.list[id.0 as usize];
        ioend.bios -= 1;
        ioend.run.ok &= ok;
        self.writeback.ioends.finish(id)
    }
}
