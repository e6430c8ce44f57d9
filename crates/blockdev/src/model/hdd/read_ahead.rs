//! The drive's read buffer.
//!
//! **Rule.** After a read the drive goes on reading from where it ended, until the arm is needed elsewhere or it is
//! `ahead` sectors past what was asked for. What it read stays in a segment; the buffer keeps the last few segments. A read
//! within a segment comes from the buffer, and one that the head is about to reach waits for it without a new positioning.
//! **Source.** Ruemmler & Wilkes 1994 (read-ahead, segmented caches).
//! **Abstracted.** Read-ahead gives way to any queued command at once. Segments are replaced oldest first.
//! **Omitted.** Adaptive segment sizes; reading what passes under the head before the first sector asked for.

use super::geometry::Geometry;
use super::write_cache::Extent;
use std::collections::VecDeque;
use units::Nanos;

/// The head reads on: it was at the beginning of `from` at `since`, and stops before `limit`.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: u64,
    since: Nanos,
    limit: u64,
}

impl Run {
    /// When the head is at the beginning of `sector`, which lies in the run.
    fn time_at(&self, geometry: &Geometry, sector: u64) -> Nanos {
        self.since + Nanos(geometry.position(sector) - geometry.position(self.from))
    }

    /// The sector under the head.
    fn reached(&self, geometry: &Geometry, now: Nanos) -> u64 {
        let position = geometry.position(self.from) + now.since(self.since).0;
        geometry.sector_at(position).clamp(self.from, self.limit)
    }
}

/// What the buffer can do for a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hit {
    /// All of it is there.
    Full,
    /// The head, reading on, has passed its beginning and reaches its end at this instant.
    Streaming(Nanos),
    /// It must be sought.
    Miss,
}

/// Segments and the run that fills the youngest.
#[derive(Clone, Debug)]
pub(super) struct ReadAhead {
    /// Oldest first; the last is filled by the run, and its end is then where the run began.
    segments: VecDeque<Extent>,
    segments_max: usize,
    ahead: u64,
    run: Option<Run>,
}

impl ReadAhead {
    pub(super) fn new(ahead: u64, segments_max: usize) -> ReadAhead {
        ReadAhead { segments: VecDeque::with_capacity(segments_max), segments_max, ahead, run: None }
    }

    /// Looks `read` up.
    pub(super) fn lookup(&self, geometry: &Geometry, now: Nanos, read: Extent) -> Hit {
        let within = |s: &Extent| s.start <= read.start && read.end <= s.end;
        if self.segments.iter().any(within) {
            return Hit::Full;
        }
        let (Some(run), Some(segment)) = (self.run, self.segments.back()) else {
            return Hit::Miss;
        };
        if read.start < segment.start || read.start > run.limit {
            return Hit::Miss;
        }
        let stopped = run.time_at(geometry, run.limit) <= now;
        if read.end <= run.limit && run.time_at(geometry, read.end) <= now {
            Hit::Full
        } else if stopped || run.time_at(geometry, read.start.max(run.from)) > now {
            Hit::Miss
        } else {
            Hit::Streaming(run.time_at(geometry, read.end))
        }
    }

    /// The host took `read` from the buffer: the run may go further, if it still runs.
    pub(super) fn consumed(&mut self, geometry: &Geometry, now: Nanos, read: Extent) {
        if let Some(run) = &mut self.run
            && run.time_at(geometry, run.limit) > now
        {
            run.limit = run.limit.max(read.end + self.ahead).min(geometry.sectors());
        }
    }

    /// The arm is needed: the run ends. Returns the sector that the head reached, if it ran.
    pub(super) fn stop(&mut self, geometry: &Geometry, now: Nanos) -> Option<u64> {
        let reached = self.run.take()?.reached(geometry, now);
        if let Some(segment) = self.segments.back_mut() {
            segment.end = segment.end.max(reached);
            segment.start = segment.start.max(segment.end.saturating_sub(self.ahead));
        }
        Some(reached)
    }

    /// The medium delivered the last of `read` at `now`; the head reads on from there.
    pub(super) fn start(&mut self, geometry: &Geometry, now: Nanos, read: Extent) {
        if self.ahead == 0 {
            return;
        }
        match self.segments.back_mut() {
            Some(last) if last.start <= read.start && read.start <= last.end => {
                last.end = last.end.max(read.end);
                last.start = last.start.max(last.end.saturating_sub(self.ahead));
            }
            _ => {
                if self.segments.len() == self.segments_max {
                    self.segments.pop_front();
                }
                self.segments.push_back(read);
            }
        }
        self.run = Some(Run { from: read.end, since: now, limit: (read.end + self.ahead).min(geometry.sectors()) });
    }
}
