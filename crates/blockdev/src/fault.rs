//! Faults for swarm tests.

use units::Nanos;

/// What goes wrong, from the instant of the injection on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The next `requests` requests to complete fail with [`crate::IoError::Eio`]; every bio merged into one fails.
    /// On a RAID-0 the first member fails.
    Eio {
        /// How many requests; adds to those still to fail.
        requests: u32,
    },
    /// For `duration` the device takes no command and returns none; what it was doing inside goes on.
    /// On a RAID-0 every member stalls.
    Stall {
        /// How long, from now; a longer stall already under way stays.
        duration: Nanos,
    },
}

/// The faults in force.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    eio_requests: u32,
    stalled_until: Nanos,
}

impl Faults {
    pub(crate) fn inject(&mut self, now: Nanos, fault: Fault) {
        match fault {
            Fault::Eio { requests } => {
                self.eio_requests = self.eio_requests.saturating_add(requests);
            }
            Fault::Stall { duration } => {
                self.stalled_until = self.stalled_until.max(now + duration);
            }
        }
    }

    /// Whether anything is in force.
    pub(crate) fn any_at(&self, now: Nanos) -> bool {
        self.eio_requests > 0 || self.stalled_until > now
    }

    /// The first instant at or after `at` at which the device acts.
    pub(crate) fn after_stall(&self, at: Nanos) -> Nanos {
        at.max(self.stalled_until)
    }

    /// Whether the request that completes now fails; uses up one failure.
    pub(crate) fn take_eio(&mut self) -> bool {
        let fails = self.eio_requests > 0;
        self.eio_requests -= u32::from(fails);
        fails
    }
}
