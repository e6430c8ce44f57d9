//! Progress on standard error: bars on a terminal, a line per finished run elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use units::Nanos;

use super::Stopwatch;

const TOTAL: &str = "{bar:30} {pos}/{len} runs, {elapsed} so far, about {eta} left";
const RUN: &str = "{spinner} {prefix}: {msg}";

/// The progress of all runs.
pub(crate) struct Board {
    bars: Option<Bars>,
    runs: usize,
    ended: AtomicUsize,
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
    watch: Stopwatch,
}

impl Board {
    /// A board for this many runs.
    pub(crate) fn new(runs: usize) -> Board {
        let bars = io::stderr().is_terminal().then(|| {
            let all = MultiProgress::new();
            let total = all.add(ProgressBar::new(runs as u64).with_style(style(TOTAL)));
            Bars { all, total }
        });
        Board { bars, runs, ended: AtomicUsize::new(0) }
    }

    /// A run starts.
    pub(crate) fn start(&self, name: String) -> Line<'_> {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = ProgressBar::new_spinner().with_style(style(RUN)).with_prefix(name.clone());
            bars.all.insert_before(&bars.total, bar)
        });
        Line { board: self, name, bar, watch: Stopwatch::start() }
    }

    /// Calls `print` while no bar is in its way.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bars {
            Some(bars) => bars.all.suspend(print),
            None => print(),
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
    /// The run has come to `now`.
    pub(super) fn update(&mut self, now: Nanos, phase: &str) {
        if let Some(bar) = &self.bar {
            let virtual_s = now.as_secs_f64();
            let rate = virtual_s / self.watch.seconds().max(0.001);
            bar.set_message(format!("{phase}, {virtual_s:.0} s of virtual time at {rate:.1} s/s"));
            bar.tick();
        }
    }

    /// The run goes on, on a kernel that does not tell how far it has come.
    pub(crate) fn tick(&mut self) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{:.0} s on the wall", self.watch.seconds()));
            bar.tick();
        }
    }

    /// The run has ended.
    pub(crate) fn end(self, how: String) {
        let ended = self.board.ended.fetch_add(1, Ordering::Relaxed) + 1;
        match (&self.board.bars, &self.bar) {
            (Some(bars), Some(bar)) => {
                bar.finish_and_clear();
                bars.total.inc(1);
            }
            // Without a standard error there is nobody to tell.
            _ => drop(writeln!(io::stderr().lock(), "mmtwin: [{ended}/{}] {}: {how}", self.board.runs, self.name)),
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant")
}
