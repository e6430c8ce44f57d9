//! fsync and sync.
//!
//! Rule: fsync starts the writeback of every dirty page, waits for each page under writeback in the order of the file,
//! and then for the log. Pages dirtied meanwhile behind the place that it has reached are not its concern.
//! Source: `__filemap_fdatawrite_range()`, `__filemap_fdatawait_range()`, mm/filemap.c, `xfs_file_fsync()`,
//! fs/xfs/xfs_file.c (4.20; 6.12 the same).
//! Abstracted: the log is forced whether or not the inode is in it.

use units::{FileId, Pfn};

use super::submit::{JournalWait, OpenBio, Written};
use crate::pagecache::Slot;
use crate::vfs::CommitId;
use crate::{Bio, Env, Frame, Mm};

/// Pages that are written or looked at in one step.
const STEP: u32 = 1024;

/// Where an fsync is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fsync {
    phase: Phase,
    next: u32,
    open: OpenBio,
    commit: Option<CommitId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    #[default]
    Write,
    Wait,
    Log,
}

/// What an fsync has to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsyncStep {
    /// Call again.
    More,
    /// Wait for the page's writeback, then call again.
    Wait(Pfn),
    /// Wait for the journal, then call again.
    Journal(JournalWait),
    /// Count the log's bio with [`Mm::begin_metadata`], submit it and wait for its end unless it has ended, then call again.
    Log(Bio),
    /// Everything is on the device.
    Done,
}

impl Mm {
    /// One step of fsync.
    pub fn fsync_step(&mut self, env: &Env, file: FileId, fsync: &mut Fsync) -> FsyncStep {
        match fsync.phase {
            Phase::Write => {
                let run = self.write_into(env, file, fsync.next, STEP, true, &mut fsync.open);
                fsync.next = run.next;
                match run.stop {
                    Written::Enough => {}
                    Written::Wait(pfn) => return FsyncStep::Wait(pfn),
                    Written::Journal(wait) => return FsyncStep::Journal(wait),
                    Written::End => *fsync = Fsync { phase: Phase::Wait, ..Fsync::default() },
                }
                FsyncStep::More
            }
            Phase::Wait => match self.next_under_writeback(file, &mut fsync.next) {
                Some(pfn) => FsyncStep::Wait(pfn),
                None => {
                    fsync.phase = Phase::Log;
                    FsyncStep::More
                }
            },
            Phase::Log => {
                if let Some(commit) = fsync.commit.take() {
                    self.vfs_end_commit(env, self.fs_id(file), commit);
                    return FsyncStep::Done;
                }
                match self.force_log(env, file) {
                    Some((bio, commit)) => {
                        fsync.commit = commit;
                        FsyncStep::Log(bio)
                    }
                    None => FsyncStep::Done,
                }
            }
        }
    }

    /// Pages of a file that are dirty, and folios that are under writeback.
    pub fn dirty_pages_of(&self, file: FileId) -> (u32, u32) {
        (self.pagecache.trees.nr_dirty(file.0), self.writeback.records.under_writeback(file))
    }

    /// The first page under writeback from `*from` on, which is marked as waited for; `*from` moves there.
    pub fn next_under_writeback(&mut self, file: FileId, from: &mut u32) -> Option<Pfn> {
        while self.dirty_pages_of(file).1 > 0 {
            let (index, _) = self.pagecache.trees.next_entry(file.0, *from)?;
            *from = index;
            if let Slot::Page(pfn) = self.pagecache_get(file, index)
                && self.frames[pfn].has(Frame::WRITEBACK)
            {
                self.frames[pfn].set(Frame::WAITERS);
                return Some(pfn);
            }
            *from = index.checked_add(1)?;
        }
        None
    }

    /// Asks the flusher of a device to write everything that is dirty now, and wakes it; the ticket tells when it is
    /// done ([`Mm::sync_done`]).
    pub fn request_sync(&mut self, device: u16) -> u64 {
        let state = self.writeback.device_mut(device);
        state.tickets += 1;
        let ticket = state.tickets;
        state.requests.push_back(super::Request { ticket });
        self.effects.push(crate::Effect::WakeFlusher(device));
        ticket
    }

    /// Whether the flusher has submitted all that a ticket asked for; the pages may still be under writeback.
    pub fn sync_done(&self, device: u16, ticket: u64) -> bool {
        self.writeback.device(device).is_some_and(|d| d.tickets_done >= ticket)
    }
}
