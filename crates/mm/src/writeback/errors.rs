//! Failed writes on their way to who asks.
//!
//! Rule: a write of a file's data that fails marks the file; the pages count as written, and what they held is lost. fsync
//! reports the mark, once it has waited for what it wrote: the first one to look takes it away, or each open file that
//! was open before reports it once, and one that is opened later only if nobody has seen it yet ([`WriteErrors`]). The mark
//! goes when the inode leaves memory.
//! Source: `mapping_set_error()`, `filemap_check_errors()` (mm/filemap.c, 4.12), `errseq_set()`, `errseq_sample()`,
//! `errseq_check_and_advance()` (lib/errseq.c), `file_check_and_advance_wb_err()` (mm/filemap.c), 4.20; 6.12 the same.
//! Abstracted: every error is `EIO`.

use rules::WriteErrors;
use units::FileId;

use crate::Mm;

/// The errors of a file (`errseq_t`, or `AS_EIO`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct FileErrors {
    /// Errors, of which those between two looks count as one.
    count: u32,
    /// Somebody has looked since the last one.
    seen: bool,
}

/// Errors of a file that an open file has reported, or need not report ([`Mm::sample_write_errors`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ErrorsSeen(u32);

impl FileErrors {
    fn set(&mut self) {
        if self.count == 0 || self.seen {
            *self = FileErrors { count: self.count + 1, seen: false };
        }
    }

    fn sample(&self) -> ErrorsSeen {
        ErrorsSeen(if self.seen { self.count } else { 0 })
    }

    fn check_and_advance(&mut self, since: &mut ErrorsSeen) -> bool {
        if since.0 == self.count {
            return false;
        }
        self.seen = true;
        *since = ErrorsSeen(self.count);
        true
    }
}

impl Mm {
    /// A write of a file's data failed.
    pub(super) fn set_write_error(&mut self, file: FileId) {
        self.writeback.errors.entry(file.0).or_default().set();
    }

    /// What a file that is opened now need not report.
    pub fn sample_write_errors(&self, file: FileId) -> ErrorsSeen {
        self.writeback.errors.get(&file.0).map_or(ErrorsSeen::default(), FileErrors::sample)
    }

    /// At the end of fsync: whether it reports a failed write; `since` is what the open file has reported so far.
    pub fn report_write_error(&mut self, file: FileId, since: &mut ErrorsSeen) -> bool {
        if self.rules.write_errors == WriteErrors::Flag {
            return self.writeback.errors.remove(&file.0).is_some();
        }
        self.writeback.errors.get_mut(&file.0).is_some_and(|errors| errors.check_and_advance(since))
    }

    /// An inode leaves memory, and its errors with it.
    pub(crate) fn forget_write_errors(&mut self, file: FileId) {
        self.writeback.errors.remove(&file.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_that_was_open_reports_an_error_once() {
        let mut errors = FileErrors::default();
        let (mut a, mut b) = (errors.sample(), errors.sample());
        errors.set();
        errors.set();
        assert!(errors.check_and_advance(&mut a));
        assert!(!errors.check_and_advance(&mut a), "once");
        assert!(errors.check_and_advance(&mut b), "the other one too");
        errors.set();
        assert!(errors.check_and_advance(&mut a), "a new one");
    }

    #[test]
    fn a_file_opened_later_reports_only_what_nobody_has_seen() {
        let mut errors = FileErrors::default();
        let mut early = errors.sample();
        errors.set();
        let mut unseen = errors.sample();
        assert!(errors.check_and_advance(&mut early));
        let mut seen = errors.sample();
        assert!(!errors.check_and_advance(&mut seen));
        assert!(errors.check_and_advance(&mut unseen), "it was opened before anybody looked");
    }
}
