//! Which block of a directory of ext4 a name is in.
//!
//! Rule: names fill one block. With the next one that block becomes the root of an index by hash, and what it had goes to a leaf; a
//! leaf that is full gives the half of its names that has the larger hashes to a new one, before the name is entered. Who looks a name
//! up reads the root and a leaf. Blocks never become fewer while there is the directory.
//! Source: `ext4_add_entry()`, `make_indexed_dir()`, `do_split()`, `dx_probe()`, fs/ext4/namei.c (4.4 and 6.12; `dir_index` of mke2fs).
//! Abstracted: names have one length, and a name's hash is one of its number. Omitted: the index's second level, which comes after 507
//! leaves, some 70,000 names.

/// Leaves of an indexed directory in the order of their hashes; none while all names are in one block.
#[derive(Debug, Default)]
pub(super) struct Htree {
    leaves: Vec<Leaf>,
}

#[derive(Debug)]
struct Leaf {
    /// The least hash that belongs in it.
    from: u32,
    /// Number of the block in the directory.
    block: u32,
    /// Hashes of its names.
    names: Vec<u32>,
}

/// Hash of a name: each bit of the number changes half of its bits (the finalizer of MurmurHash3, one to one).
fn hash(dirent: u32) -> u32 {
    let mixed = (dirent ^ dirent >> 16).wrapping_mul(0x85eb_ca6b);
    let mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    mixed ^ mixed >> 16
}

impl Htree {
    /// Number of the root's block.
    pub(super) const ROOT: u32 = 0;

    pub(super) fn is_indexed(&self) -> bool {
        !self.leaves.is_empty()
    }

    fn leaf_of(&self, hash: u32) -> usize {
        self.leaves.partition_point(|leaf| leaf.from <= hash) - 1
    }

    /// Number of the block that a name is in, or will be.
    pub(super) fn block_of(&self, dirent: u32) -> u32 {
        if self.is_indexed() { self.leaves[self.leaf_of(hash(dirent))].block } else { Htree::ROOT }
    }

    /// Moves the names of a directory's only block to another one.
    pub(super) fn index(&mut self, block: u32, dirents: impl Iterator<Item = u32>) {
        debug_assert!(!self.is_indexed());
        self.leaves.push(Leaf { from: 0, block, names: dirents.map(hash).collect() });
    }

    /// Whether the leaf of a name has as many as a block holds.
    pub(super) fn is_full(&self, dirent: u32, per_block: u32) -> bool {
        self.leaves[self.leaf_of(hash(dirent))].names.len() >= per_block as usize
    }

    /// Moves half of the leaf of a name to a new block; returns the old one.
    pub(super) fn split(&mut self, dirent: u32, block: u32) -> u32 {
        let at = self.leaf_of(hash(dirent));
        let leaf = &mut self.leaves[at];
        leaf.names.sort_unstable();
        let names = leaf.names.split_off(leaf.names.len().div_ceil(2));
        let old = leaf.block;
        self.leaves.insert(at + 1, Leaf { from: names[0], block, names });
        old
    }

    /// Enters a name.
    pub(super) fn insert(&mut self, dirent: u32) {
        if self.is_indexed() {
            let at = self.leaf_of(hash(dirent));
            self.leaves[at].names.push(hash(dirent));
        }
    }

    /// Takes a name out.
    pub(super) fn remove(&mut self, dirent: u32) {
        if self.is_indexed() {
            let at = self.leaf_of(hash(dirent));
            let names = &mut self.leaves[at].names;
            let found = names.iter().position(|name| *name == hash(dirent)).expect("it was entered");
            names.swap_remove(found);
        }
    }

    /// Host bytes.
    pub(super) fn host_bytes(&self) -> usize {
        let names: usize = self.leaves.iter().map(|leaf| leaf.names.capacity() * size_of::<u32>()).sum();
        self.leaves.capacity() * size_of::<Leaf>() + names
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PER_BLOCK: u32 = 204;

    /// Enters a name as a directory does: with a block more where it has no room.
    fn enter(tree: &mut Htree, blocks: &mut u32, names: &mut Vec<u32>, dirent: u32) {
        if !tree.is_indexed() && names.len() as u32 == PER_BLOCK {
            tree.index(*blocks, names.iter().copied());
            *blocks += 1;
        }
        if tree.is_indexed() && tree.is_full(dirent, PER_BLOCK) {
            tree.split(dirent, *blocks);
            *blocks += 1;
        }
        tree.insert(dirent);
        names.push(dirent);
    }

    fn with_names(count: u32) -> (Htree, u32) {
        let (mut tree, mut blocks, mut names) = (Htree::default(), 1, Vec::new());
        (0..count).for_each(|dirent| enter(&mut tree, &mut blocks, &mut names, dirent));
        (tree, blocks)
    }

    #[test]
    fn a_full_block_becomes_a_root_with_two_leaves() {
        let (tree, blocks) = with_names(PER_BLOCK);
        assert_eq!((tree.is_indexed(), blocks, tree.block_of(7)), (false, 1, Htree::ROOT));
        let (tree, blocks) = with_names(PER_BLOCK + 1);
        assert_eq!(blocks, 3);
        let mut halves: Vec<usize> = tree.leaves.iter().map(|leaf| leaf.names.len()).collect();
        halves.sort_unstable();
        assert_eq!(halves, [102, 103], "half each, and the new one");
    }

    #[test]
    fn leaves_are_three_quarters_full_where_hashes_are_even() {
        let (tree, blocks) = with_names(20_000);
        // A leaf that grows from one half to full is ln 2 of full in the mean.
        let mean = 20_000.0 / f64::from(blocks - 1) / f64::from(PER_BLOCK);
        assert!((0.64..0.76).contains(&mean), "{mean}");
        assert_eq!(tree.leaves.len() as u32, blocks - 1);
    }

    proptest! {
        #[test]
        fn names_stay_in_the_leaf_of_their_hash(
            steps in prop::collection::vec((any::<bool>(), 0_u32..2000), 1..1500),
        ) {
            let (mut tree, mut blocks, mut names) = (Htree::default(), 1, Vec::new());
            for (enters, dirent) in steps {
                match names.iter().position(|name| *name == dirent) {
                    Some(at) if !enters => {
                        names.swap_remove(at);
                        tree.remove(dirent);
                    }
                    None if enters => enter(&mut tree, &mut blocks, &mut names, dirent),
                    _ => {}
                }
                let ends = tree.leaves.iter().skip(1).map(|leaf| leaf.from).chain([u32::MAX]);
                for (leaf, end) in tree.leaves.iter().zip(ends) {
                    prop_assert!(leaf.names.len() <= PER_BLOCK as usize);
                    prop_assert!(leaf.names.iter().all(|name| (leaf.from..=end).contains(name)));
                    prop_assert!((1..blocks).contains(&leaf.block));
                }
                let kept: usize = tree.leaves.iter().map(|leaf| leaf.names.len()).sum();
                prop_assert!(!tree.is_indexed() || kept == names.len());
            }
        }
    }
}
