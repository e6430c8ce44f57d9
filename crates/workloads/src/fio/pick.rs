//! Which file a job serves next, and which block of it.

use std::collections::BTreeMap;

use rand::Rng;

use super::FileService;

/// Chooses files.
pub(crate) struct FilePicker {
    service: FileService,
    nr_files: u32,
    current: u32,
    left_on_current: u32,
}

impl FilePicker {
    pub(crate) fn new(service: FileService, nr_files: u32) -> FilePicker {
        FilePicker { service, nr_files, current: nr_files - 1, left_on_current: 0 }
    }

    /// The next file to serve.
    pub(crate) fn next(&mut self, rng: &mut impl Rng) -> u32 {
        if self.left_on_current > 0 {
            self.left_on_current -= 1;
            return self.current;
        }
        self.current = match self.service {
            FileService::RoundRobin => (self.current + 1) % self.nr_files,
            FileService::Random(nr) => {
                self.left_on_current = nr - 1;
                rng.random_range(0..self.nr_files)
            }
        };
        self.current
    }
}

/// Blocks served of each file.
pub(crate) struct BlockMaps {
    blocks: u32,
    /// Random maps of the files of which some blocks were served, and some not.
    begun: BTreeMap<u32, Served>,
    /// Next block of each file that is served in order.
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

    /// The next block of a file in order; after the last one the first.
    pub(crate) fn next_sequential(&mut self, file: u32) -> u32 {
        let at = file as usize;
        if at >= self.cursor.len() {
            self.cursor.resize(at + 1, 0);
        }
        let block = self.cursor[at];
        self.cursor[at] = (block + 1) % self.blocks;
        block
    }

    /// A block of a file that was not served yet, or any once all were. As fio's random map: a block that was served
    /// already gives way to the next free one.
    pub(crate) fn next_random(&mut self, file: u32, rng: &mut impl Rng) -> u32 {
        let blocks = self.blocks;
        let fresh = || Served { map: vec![0; blocks.div_ceil(64) as usize], left: blocks };
        let served = self.begun.entry(file).or_insert_with(fresh);
        let start = rng.random_range(0..blocks);
        let free = |b: &u32| served.map[*b as usize / 64] >> (b % 64) & 1 == 0;
        let block = (0..blocks).map(|i| (start + i) % blocks).find(free).expect("a full map is dropped");
        served.map[block as usize / 64] |= 1 << (block % 64);
        served.left -= 1;
        if served.left == 0 {
            self.begun.remove(&file);
        }
        block
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
        let mut serve = || {
            let file = picker.next(&mut rng);
            (file, maps.next_sequential(file))
        };
        let served: Vec<_> = (0..7).map(|_| serve()).collect();
        assert_eq!(served, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 0)]);
    }

    #[test]
    fn random_sixteen_reads_a_file_of_sixteen_blocks_completely_before_the_next() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut picker = FilePicker::new(FileService::Random(16), 5);
        let mut maps = BlockMaps::new(16);
        for _ in 0..20 {
            let served: Vec<u32> = (0..16).map(|_| picker.next(&mut rng)).collect();
            assert!(served.iter().all(|f| *f == served[0] && *f < 5));
            let mut blocks: Vec<u32> = served.iter().map(|f| maps.next_random(*f, &mut rng)).collect();
            blocks.sort_unstable();
            assert_eq!(blocks, (0..16).collect::<Vec<_>>());
        }
    }
}
