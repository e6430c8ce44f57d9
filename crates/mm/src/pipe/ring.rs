//! The bytes of a pipe: buffers in order, each with a page of its own.

use std::collections::VecDeque;

use units::{PAGE_SIZE, Pfn};

/// Buffers of a pipe (`PIPE_DEF_BUFFERS`).
const BUFFERS: usize = 16;

/// A buffer: the bytes of its page that were written and not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Buffer {
    page: Pfn,
    /// First of them, and one past the last.
    start: u64,
    end: u64,
}

/// What was written and not read, and the page that is kept for the next write (`tmp_page`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Ring {
    buffers: VecDeque<Buffer>,
    spare: Option<Pfn>,
}

impl Ring {
    /// What a write of so many bytes begins with: those beyond whole pages go behind what is in the last page, if there is room for all
    /// of them. Says how many that are.
    pub(super) fn merge(&mut self, length: u64) -> u64 {
        let odd = length % PAGE_SIZE;
        match self.buffers.back_mut().filter(|last| last.end + odd <= PAGE_SIZE) {
            Some(last) => {
                last.end += odd;
                odd
            }
            None => 0,
        }
    }

    /// Whether no further page has room.
    pub(super) fn is_full(&self) -> bool {
        self.buffers.len() == BUFFERS
    }

    /// Fills a page with the next bytes, as many as fit; says how many.
    pub(super) fn push(&mut self, page: Pfn, length: u64) -> u64 {
        debug_assert!(!self.is_full() && length > 0);
        let end = length.min(PAGE_SIZE);
        self.buffers.push_back(Buffer { page, start: 0, end });
        end
    }

    /// Reads from the first buffer; says how many bytes there were of those wanted, and which page is empty now.
    pub(super) fn read(&mut self, wanted: u64) -> (u64, Option<Pfn>) {
        let Some(first) = self.buffers.front_mut() else { return (0, None) };
        let bytes = wanted.min(first.end - first.start);
        first.start += bytes;
        let emptied = (first.start == first.end).then_some(first.page);
        if emptied.is_some() {
            self.buffers.pop_front();
        }
        (bytes, emptied)
    }

    /// Keeps an empty page, or gives it back if there is one already.
    pub(super) fn keep(&mut self, page: Pfn) -> Option<Pfn> {
        match self.spare {
            None => {
                self.spare = Some(page);
                None
            }
            Some(_) => Some(page),
        }
    }

    /// The page that is kept.
    pub(super) fn take_spare(&mut self) -> Option<Pfn> {
        self.spare.take()
    }

    /// All its pages, the kept one last.
    pub(super) fn pages(&self) -> impl Iterator<Item = Pfn> + '_ {
        self.buffers.iter().map(|buffer| buffer.page).chain(self.spare)
    }

    /// Whether its buffers are such as the calls above leave behind.
    pub(super) fn is_sound(&self) -> bool {
        let holds_some = |buffer: &Buffer| buffer.start < buffer.end && buffer.end <= PAGE_SIZE;
        self.buffers.len() <= BUFFERS && self.buffers.iter().all(holds_some)
    }

    /// Host bytes beside the structure itself.
    pub(super) fn host_bytes(&self) -> usize {
        self.buffers.capacity() * size_of::<Buffer>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: usize = PAGE_SIZE as usize;

    /// A pipe byte by byte: for each page the numbers of its bytes, and how many of them were read.
    #[derive(Default)]
    struct Slow {
        pages: Vec<(Vec<u64>, usize)>,
        written: u64,
    }

    impl Slow {
        fn put(&mut self, count: usize) -> Vec<u64> {
            let bytes = (self.written..).take(count).collect();
            self.written += count as u64;
            bytes
        }

        /// Writes until all is done or no page has room; says how much that is.
        fn write(&mut self, length: usize) -> usize {
            let mut left = length;
            let odd = length % PAGE;
            if self.pages.last().is_some_and(|(bytes, _)| bytes.len() + odd <= PAGE) {
                let bytes = self.put(odd);
                self.pages.last_mut().expect("there is one").0.extend(bytes);
                left -= odd;
            }
            while left > 0 && self.pages.len() < 16 {
                let part = left.min(PAGE);
                let bytes = self.put(part);
                self.pages.push((bytes, 0));
                left -= part;
            }
            length - left
        }

        /// The next bytes, as many as there are of those wanted, and how many pages they leave empty.
        fn read(&mut self, wanted: usize) -> (Vec<u64>, usize) {
            let (mut read, before) = (Vec::new(), self.pages.len());
            while read.len() < wanted && !self.pages.is_empty() {
                let (bytes, next) = &mut self.pages[0];
                read.push(bytes[*next]);
                *next += 1;
                if *next == bytes.len() {
                    self.pages.remove(0);
                }
            }
            (read, before - self.pages.len())
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Write(usize),
        Read(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        let length = || {
            prop_oneof![1..5usize, PAGE - 2..PAGE + 3, 1..3 * PAGE, (1..4usize).prop_map(|n| n * PAGE), Just(20 * PAGE)]
        };
        prop_oneof![length().prop_map(Op::Write), length().prop_map(Op::Read)]
    }

    /// A ring with the pages that it was given, numbered from 0.
    #[derive(Default)]
    struct Given {
        ring: Ring,
        pages: u32,
    }

    impl Given {
        fn write(&mut self, length: u64) -> u64 {
            let mut done = self.ring.merge(length);
            while done < length && !self.ring.is_full() {
                let page = self.ring.take_spare().unwrap_or(Pfn(self.pages));
                self.pages = self.pages.max(page.0 + 1);
                done += self.ring.push(page, length - done);
            }
            done
        }

        /// Bytes, pages left empty, and pages that were not kept.
        fn read(&mut self, wanted: u64) -> (u64, usize, usize) {
            let (mut done, mut emptied, mut freed) = (0, 0, 0);
            loop {
                let (bytes, empty) = self.ring.read(wanted - done);
                if bytes == 0 {
                    return (done, emptied, freed);
                }
                done += bytes;
                if let Some(page) = empty {
                    emptied += 1;
                    freed += usize::from(self.ring.keep(page).is_some());
                }
            }
        }
    }

    proptest! {
        /// Any writes and reads take and give the bytes, and fill and empty the pages, that a list of bytes does.
        #[test]
        fn a_ring_is_a_list_of_bytes(ops in prop::collection::vec(op(), 1..60)) {
            let (mut given, mut slow, mut next) = (Given::default(), Slow::default(), 0);
            for op in ops {
                match op {
                    Op::Write(length) => prop_assert_eq!(given.write(length as u64), slow.write(length) as u64),
                    Op::Read(length) => {
                        let had_spare = given.ring.spare.is_some();
                        let (done, emptied, freed) = given.read(length as u64);
                        let (bytes, expected) = slow.read(length);
                        prop_assert_eq!((done, emptied), (bytes.len() as u64, expected));
                        prop_assert_eq!(freed, if had_spare { emptied } else { emptied.saturating_sub(1) });
                        prop_assert!(bytes.iter().copied().eq(next..next + done), "in order");
                        next += done;
                    }
                }
                let pages: Vec<(u64, u64)> = given.ring.buffers.iter().map(|buffer| (buffer.start, buffer.end)).collect();
                let expected: Vec<_> = slow.pages.iter().map(|(bytes, read)| (*read as u64, bytes.len() as u64)).collect();
                prop_assert_eq!(pages, expected);
                prop_assert!(given.ring.is_sound());
            }
        }
    }

    #[test]
    fn odd_bytes_go_into_the_last_page_if_all_fit() {
        let mut given = Given::default();
        assert_eq!(given.write(4000), 4000);
        assert_eq!(given.write(97), 97);
        assert_eq!(given.pages, 2, "97 do not fit behind 4000");
        assert_eq!(given.write(4096 + 3999), 4096 + 3999);
        assert_eq!(given.pages, 3, "3999 fit behind 97");
        // What is read from the front makes no room behind.
        assert_eq!(given.read(4000 + 4000), (8000, 1, 0));
        assert_eq!(given.ring.merge(1), 0);
    }
}
