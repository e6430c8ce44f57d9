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

use units::{FileId, Nanos};

use super::{Device, from_jiffies, jiffies};
use crate::pagecache::NO_RECORD;
use crate::table;

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

/// An inode with dirty pages or pages under writeback; 28 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    /// When it became dirty, in jiffies (`dirtied_when`).
    dirtied_when: u32,
    pub(super) file: u32,
    prev: u32,
    next: u32,
    /// Dirty pages.
    pub(super) nr_dirty: u32,
    /// Pages under writeback.
    pub(super) nr_writeback: u32,
    pub(super) device: u16,
    pub(super) on: On,
    /// A task writes a slice of it (`I_SYNC`).
    pub(super) syncing: bool,
}

impl Record {
    /// When it became dirty.
    pub(super) fn dirtied_when(&self) -> Nanos {
        from_jiffies(u64::from(self.dirtied_when))
    }

    /// Dates it.
    pub(super) fn set_dirtied_when(&mut self, at: Nanos) {
        self.dirtied_when = u32::try_from(jiffies(at)).expect("a run takes less than half a year");
    }
}

/// All records, with free places. The table is given back when all are free: programs write a million files and then read them.
#[derive(Debug)]
pub(super) struct Records {
    table: Vec<Record>,
    in_use: u32,
    /// First free place, chained by `next`, or [`NO_RECORD`].
    free: u32,
}

impl Default for Records {
    fn default() -> Records {
        Records { table: Vec::new(), in_use: 0, free: NO_RECORD }
    }
}

impl Records {
    pub(super) fn add(&mut self, file: FileId, device: u16) -> u32 {
        let record = Record {
            dirtied_when: 0,
            file: file.0,
            prev: NO_RECORD,
            next: NO_RECORD,
            nr_dirty: 0,
            nr_writeback: 0,
            device,
            on: On::Nothing,
            syncing: false,
        };
        self.in_use += 1;
        let at = self.free;
        if at == NO_RECORD {
            table::push(&mut self.table, record);
            return self.table.len() as u32 - 1;
        }
        self.free = std::mem::replace(&mut self[at], record).next;
        at
    }

    pub(super) fn free(&mut self, at: u32) {
        debug_assert!(self[at].on == On::Nothing && self[at].nr_dirty == 0 && self[at].nr_writeback == 0);
        let next = std::mem::replace(&mut self.free, at);
        (self[at].file, self[at].next) = (u32::MAX, next);
        self.in_use -= 1;
        if self.in_use == 0 {
            *self = Records::default();
        }
    }

    /// Records in use.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Record)> {
        self.table.iter().enumerate().map(|(at, r)| (at as u32, r)).filter(|(_, r)| r.file != u32::MAX)
    }

    pub(super) fn host_bytes(&self) -> usize {
        self.table.capacity() * size_of::<Record>()
    }
}

impl std::ops::Index<u32> for Records {
    type Output = Record;
    fn index(&self, at: u32) -> &Record {
        &self.table[at as usize]
    }
}

impl std::ops::IndexMut<u32> for Records {
    fn index_mut(&mut self, at: u32) -> &mut Record {
        &mut self.table[at as usize]
    }
}

/// A list of inodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InodeList {
    head: u32,
    tail: u32,
}

impl InodeList {
    pub(super) const EMPTY: InodeList = InodeList { head: NO_RECORD, tail: NO_RECORD };

    pub(super) fn is_empty(&self) -> bool {
        self.head == NO_RECORD
    }

    /// The one to be taken next.
    pub(super) fn tail(&self) -> Option<u32> {
        (self.tail != NO_RECORD).then_some(self.tail)
    }

    fn push_head(&mut self, records: &mut Records, at: u32) {
        let old = std::mem::replace(&mut self.head, at);
        (records[at].prev, records[at].next) = (NO_RECORD, old);
        if old == NO_RECORD {
            self.tail = at;
        } else {
            records[old].prev = at;
        }
    }

    fn remove(&mut self, records: &mut Records, at: u32) {
        let (prev, next) = (records[at].prev, records[at].next);
        match prev {
            NO_RECORD => self.head = next,
            _ => records[prev].next = next,
        }
        match next {
            NO_RECORD => self.tail = prev,
            _ => records[next].prev = prev,
        }
        (records[at].prev, records[at].next) = (NO_RECORD, NO_RECORD);
    }

    /// From head to tail.
    pub(super) fn iter<'a>(&self, records: &'a Records) -> impl Iterator<Item = u32> + 'a {
        let step = |at: u32| (at != NO_RECORD).then_some(at);
        std::iter::successors(step(self.head), move |&at| step(records[at].next))
    }
}

impl Device {
    fn list_mut(&mut self, on: On) -> Option<&mut InodeList> {
        match on {
            On::Nothing => None,
            On::Dirty => Some(&mut self.b_dirty),
            On::Io => Some(&mut self.b_io),
            On::MoreIo => Some(&mut self.b_more_io),
        }
    }

    /// Moves an inode to the head of a list, or off all.
    pub(super) fn move_inode(&mut self, records: &mut Records, at: u32, to: On) {
        let from = std::mem::replace(&mut records[at].on, to);
        if let Some(list) = self.list_mut(from) {
            list.remove(records, at);
        }
        if let Some(list) = self.list_mut(to) {
            list.push_head(records, at);
        }
    }

    /// The next inode to write: the oldest on `b_io`. Unless the caller waits for them, those that a task writes already are
    /// put off (`requeue_io()`).
    pub(super) fn next_to_write(&mut self, records: &mut Records, waits: bool) -> Option<u32> {
        while let Some(at) = self.b_io.tail() {
            if waits || !records[at].syncing {
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
        if self.b_dirty.is_empty() { jiffy } else { jiffy.max(records[self.b_dirty.head].dirtied_when()) }
    }

    /// An inode could not be written: back to `b_dirty`, which stays in order of `dirtied_when`.
    pub(super) fn redirty_tail(&mut self, records: &mut Records, at: u32, now: Nanos) {
        if !self.b_dirty.is_empty() && records[at].dirtied_when < records[self.b_dirty.head].dirtied_when {
            let jiffy = self.dirtied_now(records, now);
            records[at].set_dirtied_when(jiffy);
        }
        self.move_inode(records, at, On::Dirty);
    }

    /// Moves to `b_io` what waits on `b_more_io` and what was dirtied at `until` or before.
    pub(super) fn queue_io(&mut self, records: &mut Records, until: Option<Nanos>) {
        while let Some(at) = self.b_more_io.tail() {
            self.move_inode(records, at, On::Io);
        }
        while let Some(at) =
            self.b_dirty.tail().filter(|&at| until.is_some_and(|until| records[at].dirtied_when() <= until))
        {
            self.move_inode(records, at, On::Io);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws the lists from head to tail; files are letters.
    fn drawn(device: &Device, records: &Records) -> String {
        let list =
            |l: &InodeList| l.iter(records).map(|at| (b'a' + records[at].file as u8) as char).collect::<String>();
        format!("{}|{}|{}", list(&device.b_dirty), list(&device.b_io), list(&device.b_more_io))
    }

    /// Inodes dirtied at these jiffies.
    fn dirtied(times: &[u64]) -> (Device, Records) {
        let (mut device, mut records) = (Device::new(), Records::default());
        for (file, &time) in times.iter().enumerate() {
            let at = records.add(FileId(file as u32), 0);
            records[at].set_dirtied_when(from_jiffies(time));
            device.move_inode(&mut records, at, On::Dirty);
        }
        (device, records)
    }

    #[test]
    fn a_record_takes_28_bytes() {
        assert_eq!(size_of::<Record>(), 28);
    }

    #[test]
    fn the_table_is_given_back_when_all_records_are_free() {
        let mut records = Records::default();
        let all = [0, 1, 2].map(|file| records.add(FileId(file), 0));
        records.free(all[0]);
        records.free(all[2]);
        assert_eq!((records.add(FileId(7), 0), records.host_bytes() > 0), (all[2], true));
        records.free(all[2]);
        records.free(all[1]);
        assert_eq!((records.host_bytes(), records.add(FileId(8), 0)), (0, 0));
    }

    #[test]
    fn expired_inodes_go_to_b_io_oldest_at_the_tail() {
        let (mut device, mut records) = dirtied(&[10, 20, 30, 40]);
        assert_eq!(drawn(&device, &records), "dcba||");
        device.queue_io(&mut records, Some(from_jiffies(29)));
        assert_eq!(drawn(&device, &records), "dc|ba|");
        device.queue_io(&mut records, Some(from_jiffies(30)));
        assert_eq!(drawn(&device, &records), "d|cba|");
    }

    #[test]
    fn what_used_its_slice_comes_back_before_the_newly_expired() {
        // As the drawing at queue_io(): b_dirty gf, b_io edc, b_more_io BA becomes g, fBAedc.
        let (mut device, mut records) = dirtied(&[1, 2, 3, 4, 5, 6, 7]);
        for at in [0, 1] {
            device.move_inode(&mut records, at, On::MoreIo);
        }
        for at in [2, 3, 4] {
            device.move_inode(&mut records, at, On::Io);
        }
        assert_eq!(drawn(&device, &records), "gf|edc|ba");
        device.queue_io(&mut records, Some(from_jiffies(6)));
        assert_eq!(drawn(&device, &records), "g|fbaedc|");
    }

    #[test]
    fn a_redirtied_inode_is_as_new_as_the_newest() {
        let (mut device, mut records) = dirtied(&[10, 20]);
        device.redirty_tail(&mut records, 0, from_jiffies(25));
        assert_eq!(drawn(&device, &records), "ab||");
        assert_eq!(records[0].dirtied_when(), from_jiffies(25));
        device.redirty_tail(&mut records, 0, from_jiffies(26));
        assert_eq!(records[0].dirtied_when(), from_jiffies(25), "it is the newest already");
    }

    #[test]
    fn a_cpu_that_is_behind_does_not_date_an_inode_before_the_newest() {
        let (device, records) = dirtied(&[0, 2]);
        // 4 ms a jiffy.
        assert_eq!(device.dirtied_now(&records, Nanos(7_999_999)), Nanos(8_000_000));
        assert_eq!(device.dirtied_now(&records, Nanos(12_000_001)), Nanos(12_000_000));
    }
}
