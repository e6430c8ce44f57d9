//! The log of a file system, in a simple form.
//!
//! Rule: every transaction adds some bytes to the log in memory. A full log buffer of 32 KiB is written as one bio to
//! the next place of the log, which is used round and round. fsync writes what is there and waits for it.
//! Source: `xlog_state_get_iclog_space()`, fs/xfs/xfs_log.c: `XLOG_BIG_RECORD_BSIZE` 32 KiB, 8 log buffers (4.20).
//! Abstracted: one log per device; the log lies in the first 64 MiB of the device, whatever its size is that `mm::vfs::cil` goes by; nothing waits
//! for a log buffer, and writing metadata in place (`xfsaild`) is the file system's own affair.

use units::PAGE_SIZE;

use super::Writeback;
use crate::{Bio, BioMemory, BioTarget, Env, Mm};

/// Bytes of a log buffer.
const BUFFER: u64 = 32 << 10;
/// Sectors of a page.
const SECTORS: u64 = 8;

/// The log of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Journal {
    /// Bytes that are only in memory.
    bytes: u64,
    /// First sector and pages of the log on the device.
    sector: u64,
    pages: u64,
    /// Next page in it.
    next: u64,
}

impl Default for Journal {
    fn default() -> Journal {
        Journal { bytes: 0, sector: 0, pages: (64 << 20) / PAGE_SIZE, next: 0 }
    }
}

impl Journal {
    /// The bio that writes what is in memory.
    fn flush(&mut self, device: u16, sync: bool) -> Bio {
        let pages = self.bytes.div_ceil(PAGE_SIZE).max(1);
        if self.next + pages > self.pages {
            self.next = 0;
        }
        let sector = self.sector + self.next * SECTORS;
        self.next += pages;
        self.bytes = 0;
        Bio {
            device,
            sector,
            pages: pages as u32,
            write: true,
            sync,
            target: BioTarget::Metadata,
            memory: BioMemory::NONE,
        }
    }
}

impl Writeback {
    fn journal_mut(&mut self, device: u16) -> &mut Journal {
        let device = usize::from(device);
        if device >= self.journals.len() {
            self.journals.resize_with(device + 1, Journal::default);
        }
        &mut self.journals[device]
    }
}

impl Mm {
    /// Adds the bytes of a transaction to the log of a device; full log buffers are written.
    pub fn journal_add(&mut self, env: &Env, device: u16, bytes: u64) {
        if let Some(full) = self.journal_fill(env, device, bytes) {
            self.submit(env, full);
        }
    }

    /// The same, but the last full buffer is for the caller to write, who waits for it.
    #[must_use = "the bio writes a part of the log"]
    pub(crate) fn journal_fill(&mut self, env: &Env, device: u16, bytes: u64) -> Option<Bio> {
        let (mut left, mut last) = (bytes, None);
        while left > 0 {
            let journal = self.writeback.journal_mut(device);
            let fits = left.min(BUFFER - journal.bytes);
            journal.bytes += fits;
            left -= fits;
            if journal.bytes == BUFFER {
                let full = journal.flush(device, false);
                if let Some(before) = last.replace(full) {
                    self.submit(env, before);
                }
            }
        }
        last
    }

    /// The bio that writes the log as far as it is only in memory (`xfs_log_force()`); the caller waits for it
    /// ([`Mm::begin_metadata`]).
    pub fn journal_force(&mut self, device: u16) -> Option<Bio> {
        let journal = self.writeback.journal_mut(device);
        (journal.bytes > 0).then(|| journal.flush(device, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_written_round_and_round() {
        let mut journal = Journal { bytes: 5000, sector: 800, pages: 9, next: 0 };
        let bio = journal.flush(3, true);
        assert_eq!((bio.device, bio.sector, bio.pages, bio.sync), (3, 800, 2, true));
        journal.bytes = BUFFER;
        // 8 pages do not fit behind page 2 of 9.
        let bio = journal.flush(3, false);
        assert_eq!((bio.sector, bio.pages, journal.next), (800, 8, 8));
    }
}
