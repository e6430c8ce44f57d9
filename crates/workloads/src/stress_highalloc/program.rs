//! A program of a build: it touches pages, reads and writes small files, and starts others.
//!
//! Source: a compiler starts with parsing, and prints one function after the other then. strace shows that cc1 (gcc 12) writes its text 4 KiB
//! at a time, and that as (binutils 2.40) reads 32 KiB before it goes on (`BUFFER_SIZE`, gas/input-file.c).
//! Abstracted: its pages are touched once, at an even pace, and before it starts others; sources are read in the first third of its time,
//! text is written at an even pace in the other two, and read at an even pace in all of it.

use sys::{Access, FileName, Mapping, Pipe, SpawnOptions, Sys, Thread};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::piped::{Input, Output, run_piped, unless_unread};
use crate::steps::start;
use crate::tree::{read_file, write_file};

/// What a compiler writes of its text, and what an assembler reads of it at a time.
const TEXT_WRITE: Bytes = Bytes::kib(4);
const TEXT_READ: Bytes = Bytes::kib(32);
/// A compiler asks for memory in parts of this size (`GGC_QUIRE_SIZE`, and `malloc`'s 128 KiB).
const QUIRE: Bytes = Bytes::kib(256);
/// Sources are read in the first part of so many of a program's time.
const PARSING_PART: u64 = 3;
/// Pages touched at a time.
const STEP_PAGES: u64 = 32;

/// A program of a build.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) pages: u64,
    pub(super) time: Nanos,
    pub(super) reads: Vec<(FileName, Bytes)>,
    pub(super) writes: Vec<(FileName, Bytes)>,
    pub(super) starts: Starts,
}

/// What a program starts, and waits for.
#[derive(Clone, Debug)]
pub(super) enum Starts {
    /// Programs one after the other.
    InTurn(Vec<Program>),
    /// Two at once, of which the first writes so much text that the second reads.
    Piped(Box<[Program; 2]>, Bytes),
}

/// What a program does with text that goes through a pipe.
#[derive(Clone, Copy, Debug)]
enum Text {
    None,
    Writes(Pipe, Bytes),
    Reads(Pipe, Bytes),
}

/// How much of it is done.
#[derive(Debug)]
enum TextFlow {
    None,
    Out(Output, u64),
    In(Input, u64),
}

impl TextFlow {
    fn new(text: Text) -> TextFlow {
        match text {
            Text::None => TextFlow::None,
            Text::Writes(_, Bytes(text)) => TextFlow::Out(Output::new(TEXT_WRITE), text),
            Text::Reads(_, Bytes(text)) => TextFlow::In(Input::new(TEXT_READ), text),
        }
    }

    /// What comes before a step of a program: what the steps before made is written, what the step needs is read.
    async fn before<S: Sys>(&mut self, sys: &S, step: u64, steps: u64) -> sys::Result<()> {
        match self {
            TextFlow::None => Ok(()),
            TextFlow::Out(output, text) => output.put_to(sys, made_of(*text, step, steps)).await,
            TextFlow::In(input, text) => input.read_to(sys, *text * (step + 1) / steps).await,
        }
    }

    /// What comes after the last step.
    async fn finish<S: Sys>(self, sys: &S) -> sys::Result<()> {
        match self {
            TextFlow::None => Ok(()),
            TextFlow::Out(mut output, text) => {
                output.put_to(sys, text).await?;
                output.flush(sys).await
            }
            TextFlow::In(mut input, _) => input.read_to_end(sys).await,
        }
    }
}

/// What a compiler has made of its text after so many of its steps.
fn made_of(text: u64, step: u64, steps: u64) -> u64 {
    let parsing = steps / PARSING_PART;
    text * step.saturating_sub(parsing) / (steps - parsing)
}

/// Runs programs one after the other, until it is stopped.
pub(super) async fn run_in_turn<S: Sys>(sys: &S, programs: Vec<Program>) {
    for program in programs {
        if sys.stopping() {
            return;
        }
        sys.join(program.start(sys, Text::None)).await;
    }
}

impl Starts {
    async fn run<S: Sys>(self, sys: &S) -> sys::Result<()> {
        match self {
            Starts::InTurn(programs) => run_in_turn(sys, programs).await,
            Starts::Piped(programs, text) => {
                let [writer, reader] = *programs;
                let start =
                    |pipe| [writer.start(sys, Text::Writes(pipe, text)), reader.start(sys, Text::Reads(pipe, text))];
                run_piped(sys, start).await?;
            }
        }
        Ok(())
    }
}

impl Program {
    /// One that touches so many pages and takes so much CPU time, and does nothing else.
    pub(super) fn new(name: &'static str, pages: u64, time: Nanos) -> Program {
        Program { name, pages, time, reads: Vec::new(), writes: Vec::new(), starts: Starts::InTurn(Vec::new()) }
    }

    /// Starts it as a process of its own.
    fn start<S: Sys>(self, sys: &S, text: Text) -> Thread {
        let process = SpawnOptions::process(self.name);
        let process = match text {
            Text::None => process,
            Text::Writes(pipe, _) => process.stdout(pipe),
            Text::Reads(pipe, _) => process.stdin(pipe),
        };
        start(sys, process, move |sys: S| async move { unless_unread(self.run(&sys, text).await) })
    }

    async fn run<S: Sys>(self, sys: &S, text: Text) -> sys::Result<()> {
        self.work(sys, TextFlow::new(text)).await?;
        for (name, size) in &self.writes {
            write_file(sys, *name, *size).await?;
        }
        self.starts.run(sys).await
    }

    /// All that it does before it writes its files.
    async fn work<S: Sys>(&self, sys: &S, mut text: TextFlow) -> sys::Result<()> {
        let steps = self.pages.div_ceil(STEP_PAGES).max(1);
        let mut reads = self.reads.iter();
        let reads_per_step = self.reads.len().div_ceil((steps / PARSING_PART).max(1) as usize);
        let mut quire = None;
        for step in 0..steps {
            for (name, size) in reads.by_ref().take(reads_per_step) {
                read_file(sys, *name, *size).await?;
            }
            text.before(sys, step, steps).await?;
            self.touch(sys, step, &mut quire).await?;
            sys.compute(Nanos(self.time.0 / steps)).await;
        }
        text.finish(sys).await
    }

    /// Touches the pages of a step; asks for more memory first where the last is used up.
    async fn touch<S: Sys>(&self, sys: &S, step: u64, quire: &mut Option<Mapping>) -> sys::Result<()> {
        let pages = STEP_PAGES.min(self.pages - step * STEP_PAGES);
        let at = Bytes(step * STEP_PAGES * PAGE_SIZE % QUIRE.0);
        if at.0 == 0 {
            *quire = Some(sys.mmap(QUIRE, Bytes(PAGE_SIZE)).await?);
        }
        let mapping = quire.expect("mapped at the first step");
        sys.touch(mapping, at, Bytes(pages * PAGE_SIZE), Access::Write).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_made_in_the_last_two_thirds_of_the_steps() {
        assert_eq!((0..=9).map(|step| made_of(60, step, 9)).collect::<Vec<_>>(), [0, 0, 0, 0, 10, 20, 30, 40, 50, 60]);
        assert_eq!((0..=1).map(|step| made_of(60, step, 1)).collect::<Vec<_>>(), [0, 60]);
    }
}
