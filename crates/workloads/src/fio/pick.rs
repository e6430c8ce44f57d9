//! Which file a job serves next, and which block of it.

use std::collections::BTreeMap;

use rand::Rng;

use super::FileService;

/// Chooses files until all are done.
pub(crate) struct FilePicker {
    service: FileService,
    done: Vec<bool>,
    nr_left: u32,
    current: Option<u32>,
    left_on_current: u32,
}

impl FilePicker {
    pub(crate) fn new(service: FileService, nr_files: u32) -> FilePicker {
        let done = vec![false; nr_files as usize];
        FilePicker { service, done, nr_left: nr_files, current: None, left_on_current: 0 }
    }

    /// The next file to serve; none once all are done.
    pub(crate) fn next(&mut self, rng: &mut impl Rng) -> Option<u32> {
        if self.nr_left == 0 {
            return None;
        }
        if let Some(file) = self.current.filter(|f| self.left_on_current > 0 && !self.done[*f as usize]) {
            self.left_on_current -= 1;
            return Some(file);
        }
        let file = match self.service {
            FileService::RoundRobin => {
                self.left_on_current = 0;
                self.first_undone(self.current.map_or(0, |f| f + 1))
            }
            FileService::Random(nr) => {
                self.left_on_current = nr - 1;
                self.random_undone(rng)
            }
        };
        self.current = Some(file);
        Some(file)
    }

    /// A file has been served completely.
    pub(crate) fn done(&mut self, file: u32) {
        self.done[file as usize] = true;
        self.nr_left -= 1;
    }

    fn first_undone(&self, from: u32) -> u32 {
        let nr = self.done.len() as u32;
        (0..nr).map(|i| (from + i) % nr).find(|f| !self.done[*f as usize]).expect("a file is left")
    }

    /// fio draws until it meets a file that is not done. Once few are left that takes long, so the draw is then made
    /// among those: the same distribution.
    fn random_undone(&self, rng: &mut impl Rng) -> u32 {
        let nr = self.done.len() as u32;
        for _ in 0..64 {
            let file = rng.random_range(0..nr);
            if !self.done[file as usize] {
                return file;
            }
        }
        let nth = rng.random_range(0..self.nr_left) as usize;
        (0..nr).filter(|f| !self.done[*f as usize]).nth(nth).expect("a file is left")
    }
}

/// Blocks served of each file that was begun.
pub(crate) struct BlockMaps {
    blocks: u32,
    begun: BTreeMap<u32, Served>,
    /// Next block of every file, while all are begun and written in step.
    cursor: Vec<u32>,
}

struct Served {
    map: Vec<u64>,
    left: u32,
}

impl BlockMaps {
    pub(crate) fn new(blocks: u32) -> BlockMaps {
        assert!(blocks > 0, "a file has at least one block");
        BlockMaps { blocks, begun: BTreeMap::new(), cursor: Vec::new() }
    }

    /// The next block of a file in order, and whether it is the last.
    pub(crate) fn next_sequential(&mut self, file: u32) -> (u32, bool) {
        let at = file as usize;
        if at >= self.cursor.len() {
            self.cursor.resize(at + 1, 0);
        }
        let block = self.cursor[at];
        self.cursor[at] += 1;
        (block, block + 1 == self.blocks)
    }

    /// A block of a file that was not served yet, and whether it is the last. As fio's random map: a block that was
    /// served already gives way to the next free one.
    pub(crate) fn next_random(&mut self, file: u32, rng: &mut impl Rng) -> (u32, bool) {
        let blocks = self.blocks;
        let served = self
            .begun
            .entry(file)
            .or_insert_with(|| Served { map: vec![0; blocks.div_ceil(64) as usize], left: blocks });
        let start = rng.random_range(0..blocks);
        let free = |b: &u32| served.map[*b as usize / 64] >> (b % 64) & 1 == 0;
        let block = (0..blocks).map(|i| (start + i) % blocks).find(free).expect("a block is left");
        served.map[block as usize / 64] |= 1 << (block % 64);
        served.left -= 1;
        let last = served.left == 0;
        if last {
            self.begun.remove(&file);
        }
        (block, last)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn round_robin_serves_block_zero_of_all_files_before_block_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut picker = FilePicker::new(FileService::RoundRobin, 3);
        let mut maps = BlockMaps::new(2);
        let mut served = Vec::new();
        while let Some(file) = picker.next(&mut rng) {
            let (block, last) = maps.next_sequential(file);
            served.push((file, block));
            if last {
                picker.done(file);
            }
        }
        assert_eq!(served, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
    }

    #[test]
    fn random_sixteen_reads_a_file_of_sixteen_blocks_completely_before_the_next() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut picker = FilePicker::new(FileService::Random(16), 5);
        let mut maps = BlockMaps::new(16);
        let mut order = Vec::new();
        while let Some(file) = picker.next(&mut rng) {
            let (block, last) = maps.next_random(file, &mut rng);
            order.push((file, block));
            if last {
                picker.done(file);
            }
        }
        assert_eq!(order.len(), 5 * 16);
        for file in order.chunks(16) {
            assert!(file.iter().all(|(f, _)| *f == file[0].0));
            let mut blocks: Vec<u32> = file.iter().map(|(_, b)| *b).collect();
            blocks.sort_unstable();
            assert_eq!(blocks, (0..16).collect::<Vec<_>>());
        }
    }
}
