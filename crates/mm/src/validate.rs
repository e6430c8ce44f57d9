//! Whole-structure checks (`--verify`): each frame is in exactly one place, and counters equal a recount.

use std::fmt;

use units::Pfn;

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The structure concerned.
    pub place: &'static str,
    /// The frame concerned, if one is.
    pub pfn: Option<Pfn>,
    /// What was expected and what was found.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pfn {
            Some(pfn) => write!(f, "{}: frame {}: {}", self.place, pfn.0, self.what),
            None => write!(f, "{}: {}", self.place, self.what),
        }
    }
}
