//! `make -j1` in a kernel tree: programs that start, map, read and write small files, and end.
//!
//! Source: gcc 12 building mm/ and kernel/sched/ of linux-6.12 was measured for the shape: 1.1 s of CPU time and 23 000
//! page faults for a file, nine tenths of both in `cc1`, 1 000 files read (linux-3.0 includes 2.3 times fewer), an object
//! of 40 to 120 KiB. A compiler of 2011 needs about half of that time and memory. Which headers an object includes: the
//! dependency files (`.*.o.cmd`) of 973 objects of a build of linux-3.1.
//! Abstracted: a program's pages are touched once, at an even pace; the faults on its image and those that fork leaves
//! behind are among them.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sys::{Access, FileName, SpawnOptions, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::tree::{Tree, read_file, write_file};

/// Headers that a build may include.
const HEADERS: u32 = 2_000;
/// Share of the files that include a common header.
const COMMON_SHARE: f64 = 0.94;
/// Share that include the 300th header, by how many include them, and the power with which it falls: at ranks 400, 600, 800 and 1000
/// measured are 0.115, 0.021, 0.006 and 0.002.
const SHARE_AT_300: f64 = 0.36;
const SHARE_POWER: f64 = 4.36;
/// Share of a tree's files that are headers: one in three.
const HEADER_EVERY: u32 = 3;
/// What compiling leaves on disk: the object, and its dependencies with the command.
const OBJECT: Bytes = Bytes::kib(40);
const DEPENDENCIES: Bytes = Bytes::kib(24);
/// A compiler asks for memory in parts of this size (`GGC_QUIRE_SIZE`, and `malloc`'s 128 KiB).
const QUIRE: Bytes = Bytes::kib(256);
/// Pages touched at a time.
const STEP_PAGES: u64 = 32;

/// What compiling one file takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compile {
    /// Files of a build.
    pub(super) units: u32,
    /// Pages that `cc1` touches.
    pub(super) pages: u32,
    /// CPU time of all programs.
    pub(super) time: Nanos,
}

/// A program of a build.
#[derive(Clone, Debug)]
struct Program {
    name: &'static str,
    pages: u64,
    time: Nanos,
    reads: Vec<(FileName, Bytes)>,
    writes: Vec<(FileName, Bytes)>,
}

/// One `make`.
#[derive(Debug)]
pub(super) struct Builder {
    tree: Tree,
    compile: Compile,
    rng: ChaCha8Rng,
}

impl Builder {
    pub(super) fn new(tree: Tree, compile: Compile, seed: u64, number: u64) -> Builder {
        let rng = ChaCha8Rng::seed_from_u64(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Builder { tree, compile, rng }
    }

    /// Compiles file after file until all are done or it is stopped.
    pub(super) async fn run<S: Sys>(mut self, sys: &S) -> sys::Result<()> {
        let units = self.compile.units.min(self.tree.len());
        for unit in 0..units {
            // The sources are spread over the tree.
            let file = (u64::from(unit) * u64::from(self.tree.len()) / u64::from(units)) as u32;
            for program in self.programs(file) {
                if sys.stopping() {
                    return Ok(());
                }
                let thread = sys.spawn(SpawnOptions::process(program.name), move |sys: S| async move {
                    if let Err(error) = program.run(&sys).await {
                        sys.fail(error);
                    }
                });
                sys.join(thread).await;
            }
        }
        Ok(())
    }

    /// What `make` starts for one file: the shell with the driver, the compiler, the assembler, `fixdep`, `mv`.
    fn programs(&mut self, file: u32) -> [Program; 5] {
        let Compile { pages, time, .. } = self.compile;
        let share = |percent: u64| Nanos(time.0 * percent / 100);
        let small = |name| Program { name, pages: 450, time: share(1), reads: Vec::new(), writes: Vec::new() };
        let object = (self.tree.object(file, 0), OBJECT);
        let dependencies = (self.tree.object(file, 1), DEPENDENCIES);
        let reads = self.sources(file);
        [
            Program { pages: 900, ..small("gcc") },
            Program { name: "cc1", pages: u64::from(pages), time: share(90), reads, writes: vec![dependencies] },
            Program { name: "as", pages: 1_800, time: share(7), reads: Vec::new(), writes: vec![object] },
            Program { reads: vec![dependencies], writes: vec![dependencies], ..small("fixdep") },
            small("mv"),
        ]
    }

    /// The file and the headers that it includes.
    fn sources(&mut self, file: u32) -> Vec<(FileName, Bytes)> {
        let headers = (self.tree.len() / HEADER_EVERY).clamp(1, HEADERS);
        let included = (0..headers).filter(|rank| self.rng.random_bool(share(rank + 1)));
        let numbers: Vec<u32> = included.map(|header| header * HEADER_EVERY).collect();
        [file].into_iter().chain(numbers).map(|n| (self.tree.source(n), self.tree.size(n))).collect()
    }
}

/// Share of the files that include the header of a rank, from 1.
fn share(rank: u32) -> f64 {
    (SHARE_AT_300 * (300.0 / f64::from(rank)).powf(SHARE_POWER)).min(COMMON_SHARE)
}

impl Program {
    /// Runs it: its files are read as it goes, and written at the end.
    async fn run<S: Sys>(self, sys: &S) -> sys::Result<()> {
        let steps = self.pages.div_ceil(STEP_PAGES).max(1);
        let mut reads = self.reads.iter();
        // Sources are read in the first third.
        let reads_per_step = self.reads.len().div_ceil((steps as usize / 3).max(1));
        let mut quire = None;
        for step in 0..steps {
            for (name, size) in reads.by_ref().take(reads_per_step) {
                read_file(sys, *name, *size).await?;
            }
            let pages = STEP_PAGES.min(self.pages - step * STEP_PAGES);
            let at = Bytes(step * STEP_PAGES * PAGE_SIZE % QUIRE.0);
            if at.0 == 0 {
                quire = Some(sys.mmap(QUIRE, Bytes(PAGE_SIZE)).await?);
            }
            let mapping = quire.expect("mapped at the first step");
            sys.touch(mapping, at, Bytes(pages * PAGE_SIZE), Access::Write).await?;
            sys.compute(Nanos(self.time.0 / steps)).await;
        }
        for (name, size) in &self.writes {
            write_file(sys, *name, *size).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_headers_are_included_as_in_linux_3_1() {
        let included = |objects: i32| (1..=HEADERS).map(|rank| 1.0 - (1.0 - share(rank)).powi(objects)).sum::<f64>();
        // Within a tenth: of one object, and of so many together.
        for (objects, measured) in [(1, 289.0), (10, 479.0), (100, 813.0), (400, 1_182.0), (800, 1_278.0)] {
            let off = included(objects) / measured - 1.0;
            assert!(off.abs() < 0.1, "{objects} objects: {:.0}, measured {measured}", included(objects));
        }
        let at_least = |part: f64| (1..=HEADERS).filter(|rank| share(*rank) >= part).count();
        assert_eq!([at_least(0.9), at_least(0.2), at_least(0.05), at_least(0.01)], [243, 343, 471, 682]);
    }
}
