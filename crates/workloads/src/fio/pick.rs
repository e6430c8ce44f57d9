//! What a job does next: which file, which block, what is opened and closed.
//!
//! Rule: a file is opened when it is first chosen, and stays open until it is chosen and has no block left; then it is
//! closed and done. Sequential jobs take the blocks of a file in order, random ones each block once or any block. A job
//! that is limited by time, or that serves more blocks than its files have, starts a file that has no block left over, so that
//! none is ever done; what of that file is cached is forgotten then, if it was when the file was opened.
//! Source: `loop_cache_invalidate()`, `__get_next_file()`, `get_next_file_rr()`, `get_next_file_rand()`, `set_io_u_file()`,
//! `get_next_rand_block()`, `get_next_seq_offset()`, io_u.c; `do_io()`, backend.c, fio 2.99.

use rand::Rng;

use super::map::RandomMaps;
use super::skew::Skew;
use super::{FileService, FioJob};

/// Which way the bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// Both, each I/O drawn.
    Mix {
        /// Share of reads, in percent (`rwmixread`).
        read_pct: u32,
    },
}

/// Which block comes next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Order {
    /// Each file from its start.
    Sequential,
    /// Each block of a file once, in random order.
    Random,
    /// Any block at any time (`norandommap`).
    RandomAnew,
    /// Any block at any time, some more often (`random_distribution`).
    Skewed(Skew),
}

/// `rw=`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pattern {
    /// Which way.
    pub(crate) direction: Direction,
    /// In which order.
    pub(crate) order: Order,
}

impl Pattern {
    /// `write`.
    pub(crate) const WRITE: Pattern = Pattern { direction: Direction::Write, order: Order::Sequential };
    /// `randread`.
    pub(crate) const RAND_READ: Pattern = Pattern { direction: Direction::Read, order: Order::Random };

    /// Whether something is read.
    pub(crate) fn reads(self) -> bool {
        self.direction != Direction::Write
    }

    /// Whether something is written.
    pub(crate) fn writes(self) -> bool {
        self.direction != Direction::Read
    }
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Open a file.
    Open(u32),
    /// Read or write a block of an open file.
    Block {
        /// The file.
        file: u32,
        /// The block.
        block: u32,
        /// Whether it is written.
        write: bool,
    },
    /// A file that has no block left starts over.
    StartOver(u32),
    /// Close a file that has no block left.
    Close(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Closed,
    Open,
    Done,
}

/// The course of a job.
pub(super) struct Course {
    pattern: Pattern,
    service: FileService,
    /// It goes on without a limit of blocks.
    time_based: bool,
    /// A file that has no block left starts over.
    starts_over: bool,
    blocks: u32,
    states: Vec<State>,
    nr_done: u32,
    /// Where the round robin goes on.
    next_file: u32,
    current: Option<u32>,
    left_on_current: u32,
    /// The file that was chosen for the next block.
    chosen: Option<u32>,
    /// Whether the next block is written, if that was drawn already.
    drawn: Option<bool>,
    /// Next block of each file of a sequential job, for reads and for writes.
    positions: [Vec<u32>; 2],
    /// Blocks served of each file of a random job.
    maps: RandomMaps,
    /// Blocks still to be issued, unless the job is limited by time.
    left: u64,
}

impl Course {
    pub(super) fn new(job: &FioJob) -> Course {
        let blocks = (job.file_size.0 / job.block_size.0) as u32;
        assert!(blocks > 0 && job.nr_files > 0, "a job has a file, and a file a block");
        let positions = |used: bool| {
            let sequential = job.pattern.order == Order::Sequential;
            if used && sequential { vec![0; job.nr_files as usize] } else { Vec::new() }
        };
        let random = job.pattern.order == Order::Random;
        Course {
            pattern: job.pattern,
            service: job.service,
            time_based: job.time_based,
            starts_over: job.time_based || job.blocks() > u64::from(blocks) * u64::from(job.nr_files),
            blocks,
            states: vec![State::Closed; job.nr_files as usize],
            nr_done: 0,
            next_file: 0,
            current: None,
            left_on_current: 0,
            chosen: None,
            drawn: None,
            positions: [positions(job.pattern.reads()), positions(job.pattern.writes())],
            maps: RandomMaps::new(if random { job.nr_files } else { 0 }, blocks),
            left: job.blocks(),
        }
    }

    /// The next step; none at the end of the job.
    pub(super) fn next(&mut self, rng: &mut impl Rng) -> Option<Step> {
        if self.chosen.is_none() && self.left == 0 && !self.time_based {
            return None;
        }
        let file = match self.chosen {
            Some(file) => file,
            None => self.choose(rng)?,
        };
        self.chosen = Some(file);
        if self.states[file as usize] == State::Closed {
            self.states[file as usize] = State::Open;
            return Some(Step::Open(file));
        }
        let write = self.drawn.take().unwrap_or_else(|| self.draw_direction(rng));
        if self.starts_over && self.is_over(file, write) {
            self.start_over(file, write);
            self.drawn = Some(write);
            return Some(Step::StartOver(file));
        }
        self.chosen = None;
        match self.block_of(file, write, rng) {
            Some(block) => {
                self.left = self.left.saturating_sub(1);
                Some(Step::Block { file, block, write })
            }
            None => {
                self.states[file as usize] = State::Done;
                self.nr_done += 1;
                Some(Step::Close(file))
            }
        }
    }

    /// The files that are open at the end, in order.
    pub(super) fn open_files(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.states.len() as u32).filter(|file| self.states[*file as usize] == State::Open)
    }

    fn choose(&mut self, rng: &mut impl Rng) -> Option<u32> {
        if self.nr_done as usize == self.states.len() {
            return None;
        }
        if let Some(file) = self.current.filter(|file| self.states[*file as usize] == State::Open)
            && self.left_on_current > 0
        {
            self.left_on_current -= 1;
            return Some(file);
        }
        let (file, in_a_row) = match self.service {
            FileService::RoundRobin(in_a_row) => (self.next_in_turn(), in_a_row),
            FileService::Sequential => (self.next_in_turn(), u32::MAX),
            FileService::Random(in_a_row) => (self.any_file(rng), in_a_row),
        };
        self.current = Some(file);
        self.left_on_current = in_a_row - 1;
        Some(file)
    }

    fn next_in_turn(&mut self) -> u32 {
        loop {
            let file = self.next_file;
            self.next_file = (file + 1) % self.states.len() as u32;
            if self.states[file as usize] != State::Done {
                return file;
            }
        }
    }

    /// fio draws until it meets a file that is not done. Once few are left that takes long, so the draw is then made
    /// among those: the same distribution.
    fn any_file(&self, rng: &mut impl Rng) -> u32 {
        let nr = self.states.len() as u32;
        let is_left = |file: &u32| self.states[*file as usize] != State::Done;
        if let Some(file) = (0..64).map(|_| rng.random_range(0..nr)).find(is_left) {
            return file;
        }
        let nth = rng.random_range(0..nr - self.nr_done) as usize;
        (0..nr).filter(is_left).nth(nth).expect("a file is left")
    }

    /// Whether the next I/O writes: drawn only where there is a choice, so that other jobs draw nothing for it.
    fn draw_direction(&self, rng: &mut impl Rng) -> bool {
        match self.pattern.direction {
            Direction::Read => false,
            Direction::Write => true,
            Direction::Mix { read_pct } => rng.random_range(0..100) >= read_pct,
        }
    }

    fn block_of(&mut self, file: u32, write: bool, rng: &mut impl Rng) -> Option<u32> {
        match self.pattern.order {
            Order::Sequential => self.next_in_order(file, write),
            Order::Random => self.any_block(file, rng),
            Order::RandomAnew => Some(rng.random_range(0..self.blocks)),
            Order::Skewed(skew) => Some(skew.block(file, self.blocks, rng)),
        }
    }

    /// Whether no block of a file is left.
    fn is_over(&self, file: u32, write: bool) -> bool {
        match self.pattern.order {
            Order::Sequential => self.positions[usize::from(write)][file as usize] == self.blocks,
            Order::Random => self.maps.left(file) == 0,
            Order::RandomAnew | Order::Skewed(_) => false,
        }
    }

    fn start_over(&mut self, file: u32, write: bool) {
        match self.pattern.order {
            Order::Sequential => self.positions[usize::from(write)][file as usize] = 0,
            Order::Random => self.maps.start_over(file),
            Order::RandomAnew | Order::Skewed(_) => unreachable!("it is never over"),
        }
    }

    /// Reads and writes go through a file each on its own (`f->last_pos[ddir]`).
    fn next_in_order(&mut self, file: u32, write: bool) -> Option<u32> {
        let position = &mut self.positions[usize::from(write)][file as usize];
        let block = *position;
        *position += u32::from(block < self.blocks);
        (block < self.blocks).then_some(block)
    }

    fn any_block(&mut self, file: u32, rng: &mut impl Rng) -> Option<u32> {
        self.maps.serve(file, rng.random_range(0..self.blocks))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use sys::Dir;
    use units::Bytes;

    use super::*;

    fn job(pattern: Pattern, service: FileService, nr_files: u32, blocks: u64, time_based: bool) -> FioJob {
        let (block_size, file_size) = (Bytes::kib(4), Bytes::kib(4 * blocks));
        FioJob { service, time_based, block_size, ..FioJob::new(pattern, file_size, nr_files, Dir(0)) }
    }

    /// `o` opens, `c` closes, a block is `file.block`.
    fn course(job: &FioJob, steps: usize) -> Vec<String> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut course = Course::new(job);
        let mut drawn = Vec::new();
        while let Some(step) = course.next(&mut rng).filter(|_| drawn.len() < steps) {
            drawn.push(match step {
                Step::Open(file) => format!("o{file}"),
                Step::Block { file, block, .. } => format!("{file}.{block}"),
                Step::StartOver(file) => format!("s{file}"),
                Step::Close(file) => format!("c{file}"),
            });
        }
        drawn
    }

    #[test]
    fn round_robin_opens_on_first_use_and_leaves_all_open_until_the_end() {
        let job = job(Pattern::WRITE, FileService::RoundRobin(1), 3, 2, false);
        assert_eq!(course(&job, 99), ["o0", "0.0", "o1", "1.0", "o2", "2.0", "0.1", "1.1", "2.1"]);
        let (mut course, mut rng) = (Course::new(&job), ChaCha8Rng::seed_from_u64(1));
        while course.next(&mut rng).is_some() {}
        assert_eq!(course.open_files().collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_writer_limited_by_time_starts_its_files_over() {
        let job = job(Pattern::WRITE, FileService::RoundRobin(1), 2, 1, true);
        assert_eq!(course(&job, 7), ["o0", "0.0", "o1", "1.0", "s0", "0.0", "s1"]);
    }

    /// Blocks by file in the order of their reading, runs of the same file joined.
    fn runs(steps: &[String]) -> Vec<(u32, Vec<u32>)> {
        let mut runs: Vec<(u32, Vec<u32>)> = Vec::new();
        for (file, block) in steps.iter().filter_map(|step| step.split_once('.')) {
            let (file, block) = (file.parse().unwrap(), block.parse().unwrap());
            match runs.last_mut().filter(|run| run.0 == file) {
                Some(run) => run.1.push(block),
                None => runs.push((file, vec![block])),
            }
        }
        runs
    }

    #[test]
    fn random_sixteen_reads_a_file_of_sixteen_blocks_whole_and_never_closes_it_in_a_timed_run() {
        let job = job(Pattern::RAND_READ, FileService::Random(16), 5, 16, true);
        let steps = course(&job, 4000);
        assert_eq!(steps.len(), 4000);
        assert!(!steps.iter().any(|step| step.starts_with('c')));
        assert_eq!(steps.iter().filter(|step| step.starts_with('o')).count(), 5, "each file is opened once");
        let served = steps.iter().filter(|step| step.contains('.')).count();
        let starts = steps.iter().filter(|step| step.starts_with('s')).count();
        // One start for each sixteen blocks, but for the first ones of each file and what is not over yet.
        assert!((served / 16 - 5..=served / 16).contains(&starts), "{starts} starts, {served} blocks");
        let runs = runs(&steps);
        for (_, blocks) in &runs[..runs.len() - 1] {
            // A file that is drawn twice in a row is read twice.
            for pass in blocks.chunks(16) {
                let mut pass = pass.to_vec();
                pass.sort_unstable();
                assert_eq!(pass, (0..16).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_random_job_without_a_time_limit_ends_after_as_many_blocks_as_there_are() {
        let job = job(Pattern::RAND_READ, FileService::Random(4), 3, 4, false);
        let steps = course(&job, 999);
        let mut blocks: Vec<&String> = steps.iter().filter(|step| step.contains('.')).collect();
        assert_eq!(blocks.len(), 12);
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), 12, "each block once");
        // What is closed was found without a block left when it was drawn again.
        for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.starts_with('c')) {
            let prefix = format!("{}.", &step[1..]);
            assert_eq!(steps[..at].iter().filter(|s| s.starts_with(&prefix)).count(), 4);
            assert!(!steps[at..].iter().any(|s| s.starts_with(&prefix)));
        }
    }

    /// Reads as `r`, writes as `w`, with their blocks.
    fn accesses(job: &FioJob, steps: usize) -> Vec<(char, u32)> {
        let (mut rng, mut course) = (ChaCha8Rng::seed_from_u64(1), Course::new(job));
        let steps = (0..steps).map_while(|_| course.next(&mut rng));
        let access = |step| match step {
            Step::Block { block, write, .. } => Some((if write { 'w' } else { 'r' }, block)),
            _ => None,
        };
        steps.filter_map(access).collect()
    }

    #[test]
    fn mixed_sequential_jobs_read_and_write_each_from_the_start() {
        let pattern = Pattern { direction: Direction::Mix { read_pct: 50 }, order: Order::Sequential };
        let job = job(pattern, FileService::RoundRobin(1), 1, 64, false);
        let seen = accesses(&job, 60);
        for kind in ['r', 'w'] {
            let blocks: Vec<u32> = seen.iter().filter(|(k, _)| *k == kind).map(|(_, block)| *block).collect();
            assert!(blocks.len() > 10 && blocks.iter().copied().eq(0..blocks.len() as u32), "{kind}: {blocks:?}");
        }
    }

    #[test]
    fn the_share_of_reads_is_as_asked_for() {
        for read_pct in [0, 30, 100] {
            let pattern = Pattern { direction: Direction::Mix { read_pct }, order: Order::RandomAnew };
            let seen = accesses(&job(pattern, FileService::RoundRobin(1), 1, 64, true), 10_001);
            let reads = seen.iter().filter(|(kind, _)| *kind == 'r').count() as i64;
            // Four standard deviations of 10000 draws are at most 200.
            assert!((reads - 100 * i64::from(read_pct)).abs() <= 200, "{reads} at {read_pct} %");
        }
    }

    #[test]
    fn a_file_served_sequentially_is_finished_before_the_next_begins() {
        let job = job(Pattern::WRITE, FileService::Sequential, 2, 2, false);
        assert_eq!(course(&job, 99), ["o0", "0.0", "0.1", "c0", "o1", "1.0", "1.1"]);
    }

    #[test]
    fn a_job_of_more_blocks_than_its_files_have_starts_them_over() {
        let job =
            FioJob { io_size: Some(Bytes::kib(4 * 5)), ..job(Pattern::WRITE, FileService::RoundRobin(1), 1, 2, false) };
        assert_eq!(course(&job, 99), ["o0", "0.0", "0.1", "s0", "0.0", "0.1", "s0", "0.0"]);
    }
}
