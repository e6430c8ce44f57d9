//! What is asked of a device and what it answers.

use units::Nanos;

/// Bytes in a sector, the unit of addresses and lengths (`SECTOR_SIZE`, include/linux/blk_types.h).
pub const SECTOR_SIZE: u64 = 512;

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Op {
    /// `REQ_OP_READ`.
    Read,
    /// `REQ_OP_WRITE`.
    Write,
    /// `REQ_OP_FLUSH`: everything written and completed before is on the medium when this completes.
    Flush,
}

impl Op {
    /// Index into a table with one entry per operation.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// One I/O of the submitter, `struct bio`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bio {
    /// The submitter's cookie, handed back in [`Completion::id`]; need not be unique.
    pub id: u64,
    /// What to do.
    pub op: Op,
    /// First sector, in units of 512 bytes; ignored by a flush.
    pub sector: u64,
    /// Length in sectors: at least 1, and 0 for a flush.
    pub sectors: u32,
    /// Someone waits for it (`REQ_SYNC`). Reads are synchronous whatever this says.
    pub sync: bool,
    /// Who submits it (`io_context`): a number for each process. CFQ shares the disk out among them.
    pub context: u32,
    /// It reads metadata (`REQ_META`).
    pub meta: bool,
}

/// The end of a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The cookie of the bio.
    pub id: u64,
    /// Whether all of it succeeded.
    pub result: Result<(), IoError>,
    /// When the bio was submitted.
    pub submitted: Nanos,
    /// When it completed: at or before the instant given to `advance`.
    pub at: Nanos,
}

/// Why a bio failed; the submitter sees `EIO` for either.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IoError {
    /// The device reported an error (`BLK_STS_IOERR`).
    #[error("I/O error")]
    Eio,
    /// Some of the bio lies past the last sector (`bio_check_eod()`, block/blk-core.c).
    #[error("attempt to access beyond end of device")]
    BeyondEnd,
}
