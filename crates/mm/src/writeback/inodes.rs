//! Dirty inodes and the lists that the flusher takes them from.
//!
//! Rule: an inode goes to the head of `b_dirty` when its first page is dirtied, and stays on one of the three lists
//! until the flusher finds it clean. The flusher moves the ones that are old enough to `b_io`, oldest at the tail, and
//! works from there. What used up its slice waits on `b_more_io`; what could not be written goes back to `b_dirty` as if
//! it had been dirtied now, unless the others there are older.
//! Source: `__mark_inode_dirty()`, `move_expired_inodes()`, `queue_io()`, `redirty_tail()`, `requeue_io()`,
//! fs/fs-writeback.c (4.20; 6.12 the same).
//! Abstracted: an inode's record exists while it is on a list or has pages under writeback.
//! Omitted: inodes dirty without pages, `b_dirty_time`, grouping by superblock.

use std::num::NonZeroU32;

use units::{FileId, Nanos};

use super::{Wb, from_jiffies, jiffies};
use crate::links::{IdList, Link, Linked, Links};
use crate::sparse::{Sparse, SparseSmall};

/// Which list an inode is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum On {
    /// None.
    Nothing,
    /// `b_dirty`.
    Dirty,
    /// `b_io`.
    Io,
    /// `b_more_io`.
    MoreIo,
}

/// An inode with dirty pages or pages under writeback; 4 bytes beside its neighbours on the list. How many pages are dirty the
/// tree of its pages knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record(NonZeroU32);

/// The list; whether a task writes a slice of the inode; that there is a record; and when it became dirty, in jiffies.
const ON: u32 = 0b11;
const SYNCING: u32 = 1 << 2;
const THERE: NonZeroU32 = NonZeroU32::new(1 << 3).unwrap();
const WHEN_SHIFT: u32 = 4;

impl Record {
    /// On no list.
    const NEW: Record = Record(THERE);

    fn change(&mut self, mask: u32, bits: u32) {
        debug_assert!(bits & !mask == 0 && mask & THERE.get() == 0);
        self.0 = THERE | (self.0.get() & !mask | bits);
    }

    /// Which list it is on.
    pub(super) fn on(&self) -> On {
        [On::Nothing, On::Dirty, On::Io, On::MoreIo][(self.0.get() & ON) as usize]
    }

    /// A task writes a slice of it (`I_SYNC`).
    pub(super) fn syncing(&self) -> bool {
        self.0.get() & SYNCING != 0
    }

    /// A task begins or ends to write a slice of it.
    pub(super) fn set_syncing(&mut self, syncing: bool) {
        self.change(SYNCING, if syncing { SYNCING } else { 0 });
    }

    /// When it became dirty (`dirtied_when`).
    pub(super) fn dirtied_when(&self) -> Nanos {
        from_jiffies(u64::from(self.0.get() >> WHEN_SHIFT))
    }

    /// Dates it.
    pub(super) fn set_dirtied_when(&mut self, at: Nanos) {
        let jiffies = u32::try_from(jiffies(at)).ok().filter(|jiffies| jiffies.leading_zeros() >= WHEN_SHIFT);
        let jiffies = jiffies.expect("a run takes less than twelve days");
        self.change(!0 << WHEN_SHIFT, jiffies << WHEN_SHIFT);
    }
}

/// All records, by file.
#[derive(Debug, Default)]
pub(super) struct Records {
    table: Sparse<Option<Record>>,
    /// Neighbours on the list, by file.
    links: Links,
    /// Pages under writeback, which few of many dirty files have.
    under_writeback: SparseSmall,
}

impl Records {
    /// Makes a record for a file that has none.
    pub(super) fn add(&mut self, file: FileId) {
        let old = self.table.set(file.0, Some(Record::NEW));
        debug_assert!(old.is_none());
    }

    pub(super) fn free(&mut self, file: u32) {
        debug_assert!(self[file].on() == On::Nothing && self.under_writeback(FileId(file)) == 0);
        self.table.take(file);
    }

    /// The record of a file, if it has one.
    #[inline]
    pub(super) fn get(&self, file: FileId) -> Option<&Record> {
        self.table.get_ref(file.0)?.as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, file: FileId) -> Option<&mut Record> {
        self.table.get_mut(file.0)?.as_mut()
    }

    /// Folios of a file that are under writeback.
    #[inline]
    pub(super) fn under_writeback(&self, file: FileId) -> u32 {
        self.under_writeback.get(file.0)
    }

    /// One more is.
    #[inline]
    pub(super) fn begin_writeback(&mut self, file: FileId) {
        self.under_writeback.set(file.0, self.under_writeback.get(file.0) + 1);
    }

    /// One is not any more.
    #[inline]
    pub(super) fn end_writeback(&mut self, file: FileId) {
        self.under_writeback.set(file.0, self.under_writeback.get(file.0) - 1);
    }

    /// All of them, with their files.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Record)> {
        self.table.iter().filter_map(|(file, record)| Some((file, record.as_ref()?)))
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.table.host_bytes() + self.links.host_bytes() + self.under_writeback.host_bytes()
    }
}

impl std::ops::Index<u32> for Records {
    type Output = Record;
    #[inline]
    fn index(&self, file: u32) -> &Record {
        self.get(FileId(file)).expect("a dirty inode has a record")
    }
}

impl std::ops::IndexMut<u32> for Records {
    #[inline]
    fn index_mut(&mut self, file: u32) -> &mut Record {
        self.get_mut(FileId(file)).expect("a dirty inode has a record")
    }
}

impl Linked for Records {
    #[inline]
    fn link(&self, file: u32) -> Link {
        self.links.link(file)
    }

    #[inline]
    fn set_link(&mut self, file: u32, link: Link) {
        self.links.set_link(file, link);
    }

    #[inline]
    fn set_prev(&mut self, file: u32, prev: u32) {
        self.links.set_prev(file, prev);
    }

    #[inline]
    fn set_next(&mut self, file: u32, next: u32) {
        self.links.set_next(file, next);
    }
}

impl Wb {
    fn list_mut(&mut self, on: On) -> Option<&mut IdList> {
        match on {
            On::Nothing => None,
            On::Dirty => Some(&mut self.b_dirty),
            On::Io => Some(&mut self.b_io),
            On::MoreIo => Some(&mut self.b_more_io),
        }
    }

    /// Moves an inode to the head of a list, or off all.
    pub(super) fn move_inode(&mut self, records: &mut Records, at: u32, to: On) {
        let from = records[at].on();
        records[at].change(ON, to as u32);
        if let Some(list) = self.list_mut(from) {
            list.remove(records, at);
        }
        if let Some(list) = self.list_mut(to) {
            list.push_front(records, at);
        }
    }

    /// The next inode to write: the oldest on `b_io`. Unless the caller waits for them, those that a task writes already are
    /// put off (`requeue_io()`).
    pub(super) fn next_to_write(&mut self, records: &mut Records, waits: bool) -> Option<u32> {
        while let Some(at) = self.b_io.back() {
            if waits || !records[at].syncing() {
                return Some(at);
            }
            self.move_inode(records, at, On::MoreIo);
        }
        None
    }

    /// What `dirtied_when` is now: a jiffy, and never before that of the newest, as CPUs that ran ahead of this one may
    /// have seen the next jiffy already.
    pub(super) fn dirtied_now(&self, records: &Records, now: Nanos) -> Nanos {
        let jiffy = from_jiffies(jiffies(now));
        self.b_dirty.front().map_or(jiffy, |newest| jiffy.max(records[newest].dirtied_when()))
    }

    /// An inode could not be written: back to `b_dirty`, which stays in order of `dirtied_when`.
    pub(super) fn redirty_tail(&mut self, records: &mut Records, at: u32, now: Nanos) {
        if self.b_dirty.front().is_some_and(|newest| records[at].dirtied_when() < records[newest].dirtied_when()) {
            let jiffy = self.dirtied_now(records, now);
            records[at].set_dirtied_when(jiffy);
        }
        self.move_inode(records, at, On::Dirty);
    }

    /// Moves to `b_io` what waits on `b_more_io` and what was dirtied at `until` or before.
    pub(super) fn queue_io(&mut self, records: &mut Records, until: Option<Nanos>) {
        while let Some(at) = self.b_more_io.back() {
            self.move_inode(records, at, On::Io);
        }
        while let Some(at) =
            self.b_dirty.back().filter(|&at| until.is_some_and(|until| records[at].dirtied_when() <= until))
        {
            self.move_inode(records, at, On::Io);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws the lists from head to tail; files are letters.
    fn drawn(wb: &Wb, records: &Records) -> String {
        let list = |l: &IdList| l.iter(records).map(|at| (b'a' + at as u8) as char).collect::<String>();
        format!("{}|{}|{}", list(&wb.b_dirty), list(&wb.b_io), list(&wb.b_more_io))
    }

    /// Inodes dirtied at these jiffies.
    fn dirtied(times: &[u64]) -> (Wb, Records) {
        let (mut wb, mut records) = (Wb::new(), Records::default());
        for (file, &time) in times.iter().enumerate() {
            let at = file as u32;
            records.add(FileId(at));
            records[at].set_dirtied_when(from_jiffies(time));
            wb.move_inode(&mut records, at, On::Dirty);
        }
        (wb, records)
    }

    #[test]
    fn a_record_takes_4_bytes() {
        assert_eq!(size_of::<Option<Record>>(), 4);
    }

    #[test]
    fn a_record_keeps_what_it_is_told_of_each() {
        let mut record = Record::NEW;
        let latest = from_jiffies((1 << 28) - 1);
        record.set_dirtied_when(latest);
        for (on, syncing) in [(On::MoreIo, true), (On::Io, false), (On::Dirty, true), (On::Nothing, false)] {
            record.change(ON, on as u32);
            record.set_syncing(syncing);
            assert_eq!((record.on(), record.syncing(), record.dirtied_when()), (on, syncing, latest));
        }
        record.set_dirtied_when(Nanos::ZERO);
        assert_eq!((record.on(), record.dirtied_when()), (On::Nothing, Nanos::ZERO));
    }

    #[test]
    fn pages_under_writeback_are_counted_by_file() {
        let mut records = Records::default();
        [5, 5, 7, 5].into_iter().for_each(|file| records.begin_writeback(FileId(file)));
        records.end_writeback(FileId(5));
        assert_eq!([5, 6, 7].map(|file| records.under_writeback(FileId(file))), [2, 0, 1]);
    }

    #[test]
    fn files_that_are_clean_again_take_none() {
        let mut records = Records::default();
        let files = [0, 1, 70].map(FileId);
        files.iter().for_each(|file| records.add(*file));
        let full = records.host_bytes();
        assert!(records.iter().map(|(file, _)| FileId(file)).eq(files));
        records.free(70);
        assert!(records.get(files[2]).is_none() && records.get(files[1]).is_some());
        assert!(full - records.host_bytes() >= 64 * size_of::<Option<Record>>(), "64 files from 64 on");
    }

    #[test]
    fn expired_inodes_go_to_b_io_oldest_at_the_tail() {
        let (mut wb, mut records) = dirtied(&[10, 20, 30, 40]);
        assert_eq!(drawn(&wb, &records), "dcba||");
        wb.queue_io(&mut records, Some(from_jiffies(29)));
        assert_eq!(drawn(&wb, &records), "dc|ba|");
        wb.queue_io(&mut records, Some(from_jiffies(30)));
        assert_eq!(drawn(&wb, &records), "d|cba|");
    }

    #[test]
    fn what_used_its_slice_comes_back_before_the_newly_expired() {
        // As the drawing at queue_io(): b_dirty gf, b_io edc, b_more_io BA becomes g, fBAedc.
        let (mut wb, mut records) = dirtied(&[1, 2, 3, 4, 5, 6, 7]);
        for at in [0, 1] {
            wb.move_inode(&mut records, at, On::MoreIo);
        }
        for at in [2, 3, 4] {
            wb.move_inode(&mut records, at, On::Io);
        }
        assert_eq!(drawn(&wb, &records), "gf|edc|ba");
        wb.queue_io(&mut records, Some(from_jiffies(6)));
        assert_eq!(drawn(&wb, &records), "g|fbaedc|");
    }

    #[test]
    fn a_redirtied_inode_is_as_new_as_the_newest() {
        let (mut wb, mut records) = dirtied(&[10, 20]);
        wb.redirty_tail(&mut records, 0, from_jiffies(25));
        assert_eq!(drawn(&wb, &records), "ab||");
        assert_eq!(records[0].dirtied_when(), from_jiffies(25));
        wb.redirty_tail(&mut records, 0, from_jiffies(26));
        assert_eq!(records[0].dirtied_when(), from_jiffies(25), "it is the newest already");
    }

    #[test]
    fn a_cpu_that_is_behind_does_not_date_an_inode_before_the_newest() {
        let (wb, records) = dirtied(&[0, 2]);
        // 4 ms a jiffy.
        assert_eq!(wb.dirtied_now(&records, Nanos(7_999_999)), Nanos(8_000_000));
        assert_eq!(wb.dirtied_now(&records, Nanos(12_000_001)), Nanos(12_000_000));
    }
}
