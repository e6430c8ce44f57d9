//! fsync and sync.
//!
//! Rule: fsync starts the writeback of every dirty page, waits for each page under writeback in the order of the file,
//! and then for the log. Pages dirtied meanwhile behind the place that it has reached are not its concern.
//! Source: `__filemap_fdatawrite_range()`, `__filemap_fdatawait_range()`, mm/filemap.c, `xfs_file_fsync()`,
//! fs/xfs/xfs_file.c (4.20; 6.12 the same).
//! Abstracted: the log is forced whether or not the inode is in it.

use smallvec::SmallVec;
use units::{FileId, Pfn};

use super::submit::{JournalWait, OpenBio, Written};
use super::{Request, WbId};
use crate::memcg::ROOT;
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

/// What the flushers of a device were asked for ([`Mm::request_sync`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyncTickets(SmallVec<[(WbId, u64); 2]>);

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
                let run = self.write_into(env, file, fsync.next..u32::MAX, STEP, true, &mut fsync.open);
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

    /// Asks the flushers of a device to write everything that is dirty now, and wakes them: the root group's, and those of other
    /// groups that have something dirty (`bdi_split_work_to_wbs()`). The tickets tell when it is done ([`Mm::sync_done`]).
    pub fn request_sync(&mut self, device: u16) -> SyncTickets {
        self.writeback.wbs.get_mut(WbId::root(device));
        let asked = |wb: &WbId| wb.device == device && (wb.group == ROOT || self.writeback.wbs[*wb].has_dirty_io());
        let asked: SmallVec<[WbId; 8]> = self.writeback.wbs.ids().into_iter().filter(asked).collect();
        let mut tickets = SmallVec::new();
        for wb in asked {
            let state = &mut self.writeback.wbs[wb];
            state.tickets += 1;
            state.requests.push_back(Request::Sync { ticket: state.tickets });
            tickets.push((wb, state.tickets));
            self.effects.push(crate::Effect::WakeFlusher(wb));
        }
        SyncTickets(tickets)
    }

    /// Whether the flushers have submitted all that the tickets asked for; the pages may still be under writeback.
    pub fn sync_done(&self, tickets: &SyncTickets) -> bool {
        tickets.0.iter().all(|(wb, ticket)| self.writeback.wbs[*wb].tickets_done >= *ticket)
    }
}
