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

    /// What came through the port beyond the first `read` bytes of it, to the last complete line: how far each phase has come, however
    /// short it was. Counts on in `read`.
    pub fn news(text: &str, read: &mut usize) -> Vec<Progress> {
        let end = text.rfind('\n').map_or(0, |at| at + 1);
        let new = text.get(*read..end).unwrap_or_default();
        *read = end.max(*read);
        let mut news: Vec<Progress> = new.lines().filter_map(Progress::of_line).collect();
        news.dedup_by(|next, kept| {
            let same = next.phase == kept.phase;
            if same {
                std::mem::swap(next, kept);
            }
            same
        });
        news
    }

    fn of_line(line: &str) -> Option<Progress> {
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
        let half_written = format!("{line}17 0.5");
        let mut read = 0;
        assert_eq!(Progress::news(&half_written, &mut read), [expected], "a line that is being written is none yet");
        assert_eq!(read, line.len());
        assert_eq!(Progress::news(&half_written, &mut read), []);
        for text in ["", "x y z\n"] {
            assert_eq!(Progress::news(text, &mut 0), []);
        }
    }

    #[test]
    fn a_phase_that_was_over_soon_is_told_of_too() {
        let text = "0 0.0000 write\n5 0.5000 write\n7 0.9000 stop\n8 1.0000 remove\n";
        let mut read = 0;
        let told = |news: &[Progress]| news.iter().map(|p| (p.now.0, p.phase.clone())).collect::<Vec<_>>();
        let phases = [(5, "write"), (7, "stop"), (8, "remove")].map(|(now, phase)| (now, phase.to_string()));
        assert_eq!(told(&Progress::news(text, &mut read)), phases);
        let more = format!("{text}9 1.0000 remove\n");
        assert_eq!(told(&Progress::news(&more, &mut read)), [(9, "remove".to_string())]);
    }

    #[test]
    fn the_longest_phase_and_number_fit() {
        let told = Told { now: Nanos(u64::MAX), phase: &"x".repeat(64), done: 1.0 };
        assert!(line_of(&told, &mut [0; LINE_MAX]).is_some());
    }
}
