//! Programs of a desktop that start one after the other.
//!
//! Source: mmtests' `monitors/watch-app-launch.sh` (ec3288c69633): evolution, which is given 30 seconds; gnome-terminal, in which
//! `find /usr/share` runs to its end; firefox, which Debian calls iceweasel, until a page with a table of 100 by 100 is shown.

use sys::{FileName, Sys};
use units::{Bytes, Nanos};

use crate::desktop::{EVOLUTION, Files, GNOME_TERMINAL, ICEWEASEL, Program};
use crate::steps::time_process;
use crate::tree::write_file;

/// The start of a program.
#[derive(Clone, Copy, Debug)]
struct Launch {
    program: Program,
    metric: &'static str,
    /// Files below `/usr/share` that it looks up.
    finds: u64,
    /// Time that it is given when it is there.
    wait: Nanos,
}

const LAUNCHES: [Launch; 3] = [
    Launch { program: EVOLUTION, metric: "app_launch_s/evolution-wait30", finds: 0, wait: Nanos::secs(30) },
    Launch { program: GNOME_TERMINAL, metric: "app_launch_s/gnome-terminal-find", finds: FOUND, wait: Nanos::ZERO },
    Launch { program: ICEWEASEL, metric: "app_launch_s/iceweasel-table", finds: 0, wait: Nanos::ZERO },
];

/// Files below `/usr/share`, and in a directory of it.
const FOUND: u64 = 20_000;
const FOUND_PER_DIR: u64 = 25;
const FOUND_SIZE: Bytes = Bytes::kib(4);
/// CPU time of `find` and of the terminal for a line: it is formatted and drawn. Guess.
const LINE: Nanos = Nanos::micros(50);

/// Writes the files of all programs.
pub(super) async fn install<S: Sys>(sys: &S) -> sys::Result<()> {
    for launch in &LAUNCHES {
        launch.program.install(sys).await?;
    }
    for number in 0..FOUND {
        write_file(sys, found(sys, number).await?, FOUND_SIZE).await?;
    }
    sys.sync().await
}

/// Starts the programs in turn until it is stopped.
pub(super) async fn one_after_the_other<S: Sys>(sys: &S) -> sys::Result<()> {
    loop {
        for launch in LAUNCHES {
            if sys.stopping() {
                return Ok(());
            }
            let run = move |sys: S| async move { launch.run(&sys).await };
            time_process(sys, launch.program.name, launch.metric, run).await;
        }
    }
}

async fn found<S: Sys>(sys: &S, number: u64) -> sys::Result<FileName> {
    let dir = sys.mkdir(&format!("usr/share/{}", number / FOUND_PER_DIR)).await?;
    Ok(FileName { dir, number: number % FOUND_PER_DIR })
}

impl Launch {
    async fn run<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        self.program.start_up(sys, Files::Installed).await?;
        for number in 0..self.finds {
            sys.stat(found(sys, number).await?).await?;
            sys.compute(LINE).await;
        }
        sys.sleep(self.wait).await;
        Ok(())
    }
}
