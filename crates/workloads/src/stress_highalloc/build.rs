//! `make` in a kernel tree: programs that start, map, read and write small files, and end.
//!
//! Source: defconfig of linux-3.1 for x86-64 built with gcc 4.9 (`getrusage()` of all its programs, which files there were afterwards and
//! what their `.*.o.cmd` name): 1 783 files of C in 256 s of user time and 17.57 million page faults, and of 60 of them what the
//! compiler took. 5 156 files of 289 MB were made: objects of 36 KiB, what they depend on of 24 KiB, an archive of a directory for each
//! 7 of them of 164 KiB, and the kernel's image, several times, of 56 KiB for each.
//! A file has a shell that runs gcc, fixdep, rm and mv in turn (`rule_cc_o_c`, scripts/Makefile.build). gcc starts the compiler and the assembler
//! at once, with a pipe between them (`KBUILD_CFLAGS += -pipe`, arch/x86/Makefile), and waits for both. Of 80 files of linux-3.1 (gcc 12, no debug
//! information) the text in it is 2.08 times the size of the object.
//! Abstracted: the faults on a program's image and those that fork leaves behind are among its pages; one make
//! stands for those of a directory and of the directories above.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sys::{FileName, Sys};
use units::{Bytes, Nanos};

use super::program::{Program, Starts, run_in_turn};
use crate::tree::{FILES_PER_DIR, Tree};

/// Headers that a build may include.
const HEADERS: u32 = 2_000;
/// Share of the files that include a common header.
const COMMON_SHARE: f64 = 0.9;
/// Share that include the 300th header, by how many include them, and the power with which it falls: at ranks 300, 400, 600, 800 and 1000
/// measured are 0.564, 0.205, 0.030, 0.009 and 0.004.
const SHARE_AT_300: f64 = 0.6;
const SHARE_POWER: f64 = 4.2;
/// Share of a tree's files that are such headers, if it is small: one in three.
const HEADER_EVERY: u32 = 3;
/// What compiling leaves on disk: the object, and its dependencies with the command.
const OBJECT: Bytes = Bytes::kib(36);
const DEPENDENCIES: Bytes = Bytes::kib(24);
/// Text that the object is made of.
const TEXT: Bytes = Bytes(OBJECT.0 * 208 / 100);
/// Files of which the objects are put into one archive, and its size.
const ARCHIVE_UNITS: u32 = 7;
const ARCHIVE: Bytes = Bytes::kib(164);
/// What linking the kernel writes for each file: `vmlinux.o`, `.tmp_vmlinux1` and 2, `vmlinux`, `bzImage` and what they are made from.
const IMAGE_UNIT: Bytes = Bytes::kib(56);
/// Pages that `make` and `ld` touch for an archive: what is left of all page faults.
const ARCHIVE_PAGES: u64 = 6_700;
/// Pages that linking the kernel touches for each file: 30 000 three times.
const IMAGE_PAGES_UNIT: u64 = 50;
/// `make clean` and `make defconfig` start so many programs (292 000 faults)...
const CONFIGURE_PROGRAMS: u64 = 970;
/// ...that touch so many pages each, and take the time of compiling so many files (2.4 s).
const CONFIGURE_PAGES: u64 = 300;
const CONFIGURE_UNITS: u64 = 17;

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

/// Which of the jobs of a `make -jN` one is: each compiles what every so many archives are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) number: u32,
    pub(super) of: u32,
}

impl Job {
    /// That of `make -j1`.
    pub(super) const ONLY: Job = Job { number: 0, of: 1 };

    fn compiles(self, unit: u32) -> bool {
        unit / ARCHIVE_UNITS % self.of == self.number
    }
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

    /// Cleans and configures the tree (`make clean`, `make defconfig`): a program for each of its directories that reads its `Makefile`.
    pub(super) async fn configure<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        let time = Nanos(self.compile.time.0 * CONFIGURE_UNITS / CONFIGURE_PROGRAMS);
        for number in 0..CONFIGURE_PROGRAMS {
            let file = (number * u64::from(self.tree.len()) / CONFIGURE_PROGRAMS) as u32;
            let reads = vec![(self.tree.source(file), self.tree.size(file))];
            run_in_turn(sys, vec![Program { reads, ..Program::new("make", CONFIGURE_PAGES, time) }]).await;
        }
        Ok(())
    }

    /// Compiles what is a job's file after file, until all is done or it is stopped.
    pub(super) async fn compile<S: Sys>(&mut self, sys: &S, job: Job) {
        for unit in (0..self.units()).filter(|unit| job.compiles(*unit)) {
            if sys.stopping() {
                return;
            }
            run_in_turn(sys, self.programs_after(unit)).await;
        }
    }

    /// Links what has been compiled, unless it is stopped.
    pub(super) async fn link<S: Sys>(&self, sys: &S) {
        run_in_turn(sys, vec![self.image()]).await;
    }

    /// Files that a build compiles: not more than the tree has.
    fn units(&self) -> u32 {
        self.compile.units.min(self.tree.len())
    }

    /// What is started for a file, and for the archive that it completes.
    fn programs_after(&mut self, unit: u32) -> Vec<Program> {
        let mut programs = vec![self.shell(self.file(unit))];
        if (unit + 1).is_multiple_of(ARCHIVE_UNITS) {
            programs.push(self.archive(unit));
        }
        programs
    }

    /// Headers of the tree, which are its first files.
    fn headers(&self) -> u32 {
        (self.tree.len() / HEADER_EVERY).clamp(1, HEADERS)
    }

    /// The source that is compiled so many others later than the first: those of one archive are in one directory, and the
    /// directories are spread over what is behind the headers.
    fn file(&self, unit: u32) -> u32 {
        let units = self.units();
        let first = self.headers().div_ceil(FILES_PER_DIR);
        let dirs = (self.tree.len() / FILES_PER_DIR).saturating_sub(first).max(1);
        let dir = first
            + (u64::from(unit / ARCHIVE_UNITS) * u64::from(dirs) / u64::from(units.div_ceil(ARCHIVE_UNITS))) as u32;
        (dir * FILES_PER_DIR + unit % ARCHIVE_UNITS).min(self.tree.len() - 1)
    }

    /// Of the CPU time that a file takes in all, thousandths.
    fn share(&self, of_1000: u64) -> Nanos {
        Nanos(self.compile.time.0 * of_1000 / 1000)
    }

    /// What `make` starts for one file: the shell, and in it the driver and what writes down what the file depends on.
    fn shell(&mut self, file: u32) -> Program {
        let small = |name, pages| Program::new(name, pages, self.share(10));
        let [sh, gcc, fixdep, rm, mv] =
            [("sh", 250), ("gcc", 150), ("fixdep", 120), ("rm", 120), ("mv", 150)].map(|(n, p)| small(n, p));
        let dependencies = vec![(self.tree.object(file, 1), DEPENDENCIES)];
        let gcc = Program { starts: Starts::Piped(Box::new(self.compiler_and_assembler(file)), TEXT), ..gcc };
        let fixdep = Program { reads: dependencies.clone(), writes: dependencies, ..fixdep };
        Program { starts: Starts::InTurn(vec![gcc, fixdep, rm, mv]), ..sh }
    }

    fn compiler_and_assembler(&mut self, file: u32) -> [Program; 2] {
        let cc1 = Program {
            reads: self.sources(file),
            writes: vec![(self.tree.object(file, 1), DEPENDENCIES)],
            ..Program::new("cc1", u64::from(self.compile.pages), self.share(770))
        };
        let object = vec![(self.tree.object(file, 0), OBJECT)];
        [cc1, Program { writes: object, ..Program::new("as", 1_560, self.share(50)) }]
    }

    /// Puts the objects of the last files into an archive (`ld -r`).
    fn archive(&self, unit: u32) -> Program {
        let objects =
            (unit + 1 - ARCHIVE_UNITS..=unit).map(|unit| (self.tree.object(self.file(unit), 0), OBJECT)).collect();
        let archive = (self.tree.archive(self.file(unit)), ARCHIVE);
        Program { reads: objects, writes: vec![archive], ..Program::new("ld", ARCHIVE_PAGES, self.share(800)) }
    }

    /// Links the kernel from all archives.
    fn image(&self) -> Program {
        let units = self.units();
        let last = (1..=units / ARCHIVE_UNITS).map(|archive| archive * ARCHIVE_UNITS - 1);
        let (pages, time) = (IMAGE_PAGES_UNIT * u64::from(units), Nanos(self.share(6).0 * u64::from(units)));
        Program {
            reads: last.map(|unit| (self.tree.archive(self.file(unit)), ARCHIVE)).collect(),
            writes: vec![(self.tree.image(), Bytes(IMAGE_UNIT.0 * u64::from(units)))],
            ..Program::new("ld", pages, time)
        }
    }

    /// The file and the headers that it includes.
    fn sources(&mut self, file: u32) -> Vec<(FileName, Bytes)> {
        let included: Vec<u32> = (0..self.headers()).filter(|rank| self.rng.random_bool(share(rank + 1))).collect();
        [file].into_iter().chain(included).map(|n| (self.tree.source(n), self.tree.size(n))).collect()
    }
}

/// Share of the files that include the header of a rank, from 1.
fn share(rank: u32) -> f64 {
    (SHARE_AT_300 * (300.0 / f64::from(rank)).powf(SHARE_POWER)).min(COMMON_SHARE)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn with_what_it_starts(program: &Program) -> Vec<&Program> {
        let started = match &program.starts {
            Starts::InTurn(programs) => &programs[..],
            Starts::Piped(programs, _) => &programs[..],
        };
        [program].into_iter().chain(started.iter().flat_map(with_what_it_starts)).collect()
    }

    #[test]
    fn as_many_headers_are_included_as_in_a_build() {
        let included = |objects: i32| (1..=HEADERS).map(|rank| 1.0 - (1.0 - share(rank)).powi(objects)).sum::<f64>();
        // Within a twentieth: of one object, and of so many together.
        for (objects, measured) in
            [(1, 326.0), (10, 561.0), (100, 936.0), (400, 1_270.0), (800, 1_509.0), (1600, 1_692.0)]
        {
            let off = included(objects) / measured - 1.0;
            assert!(off.abs() < 0.05, "{objects} objects: {:.0}, measured {measured}", included(objects));
        }
    }

    #[test]
    fn jobs_compile_each_file_once_and_an_archive_in_one_job() {
        let jobs: Vec<Job> = (0..8).map(|number| Job { number, of: 8 }).collect();
        for unit in 0..1_783 {
            let of = |unit| jobs.iter().filter(|job| job.compiles(unit)).map(|job| job.number).collect::<Vec<_>>();
            assert_eq!(of(unit), [unit / 7 % 8], "{unit}");
        }
    }

    #[test]
    fn a_build_faults_and_writes_what_one_did() {
        let compile = Compile { units: 1_783, pages: 6_500, time: Nanos::millis(376) };
        let mut builder = Builder::new(Tree::of_files(36_788), compile, 1, 1);
        let mut started: Vec<Program> = (0..compile.units).flat_map(|unit| builder.programs_after(unit)).collect();
        started.push(builder.image());
        let programs: Vec<&Program> = started.iter().flat_map(with_what_it_starts).collect();
        assert_eq!(programs.len() as u32, compile.units * 7 + compile.units / ARCHIVE_UNITS + 1);
        let pages: u64 = programs.iter().map(|program| program.pages).sum();
        assert!((17_300_000..17_800_000).contains(&pages), "{pages}");
        // All but configuring it.
        let time: u64 = programs.iter().map(|program| program.time.0).sum();
        let all = compile.time.0 * u64::from(compile.units - CONFIGURE_UNITS as u32);
        assert!((time as f64 / all as f64 - 1.0).abs() < 0.02, "{time} of {all}");
        let writes = programs.iter().flat_map(|program| &program.writes);
        let made: BTreeMap<_, _> = writes.map(|(name, size)| ((name.dir.0, name.number), size)).collect();
        let written: u64 = made.values().map(|size| size.0).sum();
        // 289 MB, of which an eighth are headers, lists and the host's programs, which are left out.
        assert!((245_000_000..289_000_000).contains(&written), "{written}");
    }
}
