//! How far a guest is, told while it runs: lines through a debug port of their own.
//!
//! A line is `NS DONE PHASE`: time since the start of the workload, its done share from 0 to 1, and what it is in.

use std::io::{self, Write};

use sys_linux::Told;
use units::Nanos;

use crate::port::DebugPort;

/// The port that progress goes through.
pub const PROGRESS_PORT: u16 = 0xea;
/// Longest line, in bytes: a phase is cut to 64 of them.
const LINE_MAX: usize = 128;

/// How far a guest is.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// Time since the start of the workload.
    pub now: Nanos,
    /// How much of it is done, from 0 to 1.
    pub done: f64,
    /// What it is in; before the workload, what the agent does.
    pub phase: String,
}

impl Progress {
    /// Before the agent has said a word.
    pub fn boot() -> Progress {
        Progress { now: Nanos::ZERO, done: 0.0, phase: "boot".to_string() }
    }

    /// The last complete line of what came through the port; none if there is no such line.
    pub fn last(text: &str) -> Option<Progress> {
        let line = text[..text.rfind('\n')?].lines().next_back()?;
        let mut fields = line.splitn(3, ' ');
        let (now, done) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Progress { now: Nanos(now), done, phase: fields.next()?.to_string() })
    }
}

/// What the agent does before the workload.
pub(crate) fn step(phase: &str) {
    tell(&Told { now: Nanos::ZERO, phase, done: 0.0 });
}

/// Tells how far the workload is, without allocating.
pub(crate) fn tell(told: &Told<'_>) {
    let mut room = [0; LINE_MAX];
    if let Some(line) = line_of(told, &mut room) {
        // Progress is for those who wait: without the port there are none.
        let _ = DebugPort::open(PROGRESS_PORT).and_then(|mut port| port.write_all(line));
    }
}

fn line_of<'r>(told: &Told<'_>, room: &'r mut [u8; LINE_MAX]) -> Option<&'r [u8]> {
    let mut cursor = io::Cursor::new(&mut room[..]);
    writeln!(cursor, "{} {:.4} {}", told.now.0, told.done, told.phase).ok()?;
    let len = cursor.position() as usize;
    Some(&room[..len])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read() {
        let mut room = [0; LINE_MAX];
        let told = Told { now: Nanos(1_500_000_000), phase: "run-2/phase 1", done: 0.25 };
        let line = std::str::from_utf8(line_of(&told, &mut room).unwrap()).unwrap().to_string();
        let expected = Progress { now: Nanos(1_500_000_000), done: 0.25, phase: "run-2/phase 1".to_string() };
        assert_eq!(Progress::last(&format!("0 0.0000 start\n{line}")), Some(expected.clone()));
        assert_eq!(
            Progress::last(&format!("{line}17 0.5")),
            Some(expected),
            "a line that is being written is none yet"
        );
        assert_eq!((Progress::last(""), Progress::last("x y z\n")), (None, None));
    }

    #[test]
    fn the_longest_phase_and_number_fit() {
        let told = Told { now: Nanos(u64::MAX), phase: &"x".repeat(64), done: 1.0 };
        assert!(line_of(&told, &mut [0; LINE_MAX]).is_some());
    }
}
