//! Progress on standard error: bars on a terminal, a line per finished run elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{FormattedDuration, MultiProgress, ProgressBar, ProgressStyle};
use twin::Progress;

use super::Stopwatch;

const TOTAL: &str = "{bar:20} {msg}";
const RUN: &str = "{spinner} {prefix}: {wide_msg}";
/// Parts in which the progress of one run is counted.
const PARTS: u64 = 1000;
/// Seconds between two lines about a run that stays in its phase.
const LINES_APART_S: f64 = 30.0;

/// The progress of all runs.
pub(crate) struct Board {
    bars: Option<Bars>,
    runs: usize,
    ended: AtomicUsize,
    /// Parts done of all runs.
    parts: AtomicU64,
    watch: Stopwatch,
}

struct Bars {
    all: MultiProgress,
    total: ProgressBar,
}

/// The progress of one run.
pub(crate) struct Line<'a> {
    board: &'a Board,
    name: String,
    bar: Option<ProgressBar>,
    /// Parts done of this run.
    parts: u64,
    watch: Stopwatch,
    told: LastTold,
}

/// What was told last of a run.
#[derive(Default)]
struct LastTold {
    phase: String,
    at_s: f64,
}

impl LastTold {
    /// Whether this is worth a line; then it is what was told last.
    fn is_news(&mut self, phase: &str, now_s: f64) -> bool {
        let news = self.phase != phase || now_s - self.at_s >= LINES_APART_S;
        if news {
            *self = LastTold { phase: phase.to_string(), at_s: now_s };
        }
        news
    }
}

impl Board {
    /// A board for this many runs.
    pub(crate) fn new(runs: usize) -> Board {
        let bars = io::stderr().is_terminal().then(|| {
            let all = MultiProgress::new();
            let total = all.add(ProgressBar::new(runs as u64 * PARTS).with_style(style(TOTAL)));
            Bars { all, total }
        });
        Board { bars, runs, ended: AtomicUsize::new(0), parts: AtomicU64::new(0), watch: Stopwatch::start() }
    }

    /// A run starts.
    pub(crate) fn start(&self, name: String) -> Line<'_> {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = ProgressBar::new_spinner().with_style(style(RUN)).with_prefix(name.clone());
            bars.all.insert_before(&bars.total, bar)
        });
        Line { board: self, name, bar, parts: 0, watch: Stopwatch::start(), told: LastTold::default() }
    }

    /// Calls `print` while no bar is in its way.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bars {
            Some(bars) => bars.all.suspend(print),
            None => print(),
        }
    }

    /// How much of all runs is done, from 0 to 1.
    fn done(&self) -> f64 {
        self.parts.load(Ordering::Relaxed) as f64 / (self.runs as u64 * PARTS) as f64
    }

    /// All runs in words: how many ended, time so far, time left.
    fn status(&self) -> String {
        let (ended, seconds) = (self.ended.load(Ordering::Relaxed), self.watch.seconds());
        format!("{ended}/{} runs, {} so far, {} left", self.runs, clock(seconds), left(seconds, self.done()))
    }

    fn show(&self) {
        if let Some(bars) = &self.bars {
            bars.total.set_position(self.parts.load(Ordering::Relaxed));
            bars.total.set_message(self.status());
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if let Some(bars) = &self.bars {
            bars.total.finish_and_clear();
        }
    }
}

impl Line<'_> {
    /// The run has come so far.
    pub(super) fn update(&mut self, progress: &Progress<'_>) {
        self.count((progress.done * PARTS as f64) as u64);
        if let Some(bar) = &self.bar {
            let (virtual_s, seconds) = (progress.now.as_secs_f64(), self.watch.seconds());
            let rate = virtual_s / seconds.max(0.001);
            let (phase, left) = (progress.phase, left(seconds, progress.done));
            bar.set_message(format!("{phase}, {virtual_s:.0} s of virtual time at {rate:.1} s/s, {left} left"));
            bar.tick();
            self.board.show();
        }
    }

    /// A run on a real kernel, which tells rarely, has come so far. Without a terminal a line tells of each new phase, and
    /// of each half minute.
    pub(crate) fn real(&mut self, progress: &Progress<'_>) {
        self.update(progress);
        if self.bar.is_some() || !self.told.is_news(progress.phase, self.watch.seconds()) {
            return;
        }
        let (virtual_s, done) = (progress.now.as_secs_f64(), progress.done * 100.0);
        let (name, phase, wall) = (&self.name, progress.phase, clock(self.watch.seconds()));
        // Without a standard error there is nobody to tell.
        let _ = writeln!(
            io::stderr().lock(),
            "mmtwin: {name}: {phase}, {virtual_s:.0} s of its own, {done:.0} % done, {wall} on the wall"
        );
    }

    /// The run has ended.
    pub(crate) fn end(mut self, how: &str) {
        self.count(PARTS);
        let ended = self.board.ended.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.bar {
            Some(bar) => {
                bar.finish_and_clear();
                self.board.show();
            }
            None => {
                let left = left(self.board.watch.seconds(), self.board.done());
                // Without a standard error there is nobody to tell.
                let _ = writeln!(
                    io::stderr().lock(),
                    "mmtwin: [{ended}/{}] {}: {how}; {left} left",
                    self.board.runs,
                    self.name
                );
            }
        }
    }

    /// The run was interrupted.
    pub(crate) fn clear(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// So many parts of this run are done; never fewer than before.
    fn count(&mut self, parts: u64) {
        let parts = parts.min(PARTS).max(self.parts);
        self.board.parts.fetch_add(parts - self.parts, Ordering::Relaxed);
        self.parts = parts;
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant")
}

/// Time left once `done` of everything took `seconds`.
fn left(seconds: f64, done: f64) -> String {
    // Before the first hundredth nobody knows.
    if done < 0.01 { "unknown time".to_string() } else { format!("about {}", clock(seconds * (1.0 - done) / done)) }
}

fn clock(seconds: f64) -> String {
    FormattedDuration(Duration::from_secs_f64(seconds.round())).to_string()
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;

    #[test]
    fn the_time_left_follows_from_what_is_done() {
        assert_eq!(left(30.0, 0.25), "about 00:01:30");
        assert_eq!(left(30.0, 1.0), "about 00:00:00");
        assert_eq!(left(30.0, 0.001), "unknown time");
    }

    #[test]
    fn a_line_tells_of_a_new_phase_or_of_half_a_minute() {
        let mut told = LastTold::default();
        let news = [("boot", 0.0), ("boot", 29.9), ("boot", 30.0), ("write", 31.0), ("write", 60.9), ("write", 61.0)];
        assert_eq!(news.map(|(phase, at)| told.is_news(phase, at)), [true, false, true, true, false, true]);
    }

    #[test]
    fn runs_count_by_their_parts_and_never_go_back() {
        let board = Board::new(4);
        let mut line = board.start("a".to_string());
        for (done, expected) in [(0.5, 0.125), (0.25, 0.125), (1.0, 0.25), (7.0, 0.25)] {
            line.update(&Progress { now: Nanos::ZERO, phase: "", done });
            assert_eq!(board.done(), expected);
        }
        board.start("b".to_string()).end("done");
        assert_eq!(board.done(), 0.5);
    }
}
