//! The shrinker of ext4's `extent_status`.
//!
//! Rule: it goes round the inodes that have entries which can be freed, and moves each to the tail as it looks at it. In an inode it goes on where it
//! stopped, to the end and from the start to there: it frees entries that are neither delayed nor referenced, and takes the mark of
//! those that are. Each entry that it sees counts as looked at, a delayed one too.
//! Source: `__es_shrink()`, `es_reclaim_extents()`, `es_do_reclaim_extents()`, `ext4_es_count()`
//! (fs/ext4/extents_status.c), 4.4 and 6.12.
//! Omitted: inodes that somebody else has locked, which it leaves out.

use units::FileId;

use super::statuses::{Entry, Status};
use super::{FileRec, Obj, Scanned};
use crate::{Env, Mm, Violation};

impl Mm {
    /// Lets the shrinker look at `nr` entries.
    pub(super) fn shrink_statuses(&mut self, env: &Env, nr: u64) -> Scanned {
        let (mut left, mut freed) = (nr, 0);
        for _ in 0..self.vfs.statuses.list.len() {
            let statuses = &mut self.vfs.statuses;
            let Some(file) = statuses.list.front() else { break };
            statuses.list.rotate(&mut statuses.links, file);
            freed += self.reclaim_statuses(env, FileId(file), &mut left);
            if left == 0 {
                break;
            }
        }
        self.charge((nr - left) * self.costs.shrink_extent);
        Scanned { scanned: nr, freed, evicted: 0 }
    }

    /// Goes once through the entries of a file while there are some `left` to look at; says how many were freed.
    pub(super) fn reclaim_statuses(&mut self, env: &Env, file: FileId, left: &mut u64) -> u64 {
        let start = self.vfs.statuses.resume.get(&file).copied().unwrap_or(0);
        let (mut freed, to_the_end) = self.reclaim_range(env, file, start, None, left);
        if to_the_end && start > 0 {
            freed += self.reclaim_range(env, file, 0, Some(start), left).0;
        }
        freed
    }

    /// Goes through the entries of a file from page `from` on, up to those that begin before `to`; says how many were freed and whether it
    /// got there, and notes where to go on.
    fn reclaim_range(&mut self, env: &Env, file: FileId, from: u32, to: Option<u32>, left: &mut u64) -> (u64, bool) {
        let (mut at, mut freed) = (self.vfs.status_at(file, from), 0);
        let (resume, done) = loop {
            let Some(entry) = self.vfs.status(file, at) else { break (0, true) };
            if *left == 0 {
                break (entry.start, false);
            }
            if let Some(to) = to.filter(|to| entry.start >= *to) {
                break (to, true);
            }
            *left -= 1;
            if entry.shrinkable() && !entry.referenced {
                self.vfs.replace_statuses(file, at..at + 1, &[]);
                self.free_status(env, file, entry.obj);
                freed += 1;
                continue;
            }
            if entry.shrinkable() {
                self.vfs.replace_statuses(file, at..at + 1, &[Entry { referenced: false, ..entry }]);
            }
            at += 1;
        };
        match resume {
            0 => self.vfs.statuses.resume.remove(&file),
            page => self.vfs.statuses.resume.insert(file, page),
        };
        (freed, done)
    }

    /// The counts are those of all files, whose entries follow each other and have an object each; what is delayed of a file is dirty
    /// and has no block.
    pub(super) fn check_statuses(&self, violations: &mut Vec<Violation>) {
        let mut wrong = |what: String| violations.push(Violation { place: "vfs", pfn: None, what });
        let (mut shrinkable, mut listed) = (0, 0);
        for file in (0..self.vfs.files.len() as u32).map(FileId) {
            let rec = self.vfs.rec(file);
            if !rec.has(FileRec::LIVE) || !self.has_statuses(file) {
                continue;
            }
            let entries: Vec<Entry> = self.vfs.statuses_from(file, 0).collect();
            let of_file = entries.iter().filter(|entry| entry.shrinkable()).count() as u64;
            shrinkable += of_file;
            listed += u32::from(of_file > 0);
            if rec.has(FileRec::STATUS_LISTED) != (of_file > 0) {
                wrong(format!("{file:?} has {of_file} entries of extent_status that can be freed: {rec:?}"));
            }
            let follow = entries.windows(2).all(|pair| pair[0].end <= pair[1].start);
            if !follow || !entries.iter().all(|entry| self.status_holds(file, entry)) {
                wrong(format!("entries of {file:?}: {entries:?}"));
            }
        }
        let statuses = &self.vfs.statuses;
        if (shrinkable, listed) != (statuses.shrinkable, statuses.list.len()) {
            let said = (statuses.shrinkable, statuses.list.len());
            wrong(format!("{said:?} entries of extent_status and inodes to shrink, recounted {shrinkable}, {listed}"));
        }
    }

    /// Whether an entry says what is so of its pages.
    fn status_holds(&self, file: FileId, entry: &Entry) -> bool {
        let blocks = |page| self.vfs.find_extent(file, page).is_some();
        let sound = entry.start < entry.end && (entry.obj != Obj::NONE || !entry.shrinkable());
        let dirty = |page| self.pagecache.trees.next_dirty(file.0, page) == Some(page);
        sound
            && match entry.status {
                Status::Written | Status::Unwritten => (entry.start..entry.end).all(blocks),
                Status::Delayed => (entry.start..entry.end).all(|page| dirty(page) && !blocks(page)),
                Status::Hole => {
                    !blocks(entry.start) && self.vfs.extents_around(file, entry.start).1.is_none_or(|n| n >= entry.end)
                }
            }
    }
}
