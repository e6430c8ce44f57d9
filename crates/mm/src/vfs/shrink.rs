//! The shrinkers: what can be freed of each kind of cache, and freeing it.
//!
//! Rule: the superblock shrinker counts unused dentries and inodes of a group on a node and, for every group and node alike, all inodes
//! that XFS has evicted, scaled by vfs_cache_pressure; buffers and shadow nodes are not scaled. A scan is divided among the three in proportion, each getting
//! one more, dentries first because they keep inodes. Where dentries have a shrinker of their own, it divides a scan among file systems so. It does nothing where file systems must not be called.
//! Source: `super_cache_count()`, `super_cache_scan()`, fs/super.c; `xfs_buftarg_shrink_scan()`, fs/xfs/xfs_buf.c;
//! `shadow_lru_isolate()`, mm/workingset.c, 4.20 and 6.12; `shrink_dcache_memory()`, fs/dcache.c,
//! `shrink_icache_memory()`, fs/inode.c, `xfs_reclaim_inode_shrink()`, fs/xfs, 2.6.39.
//! Since/until: [`VfsShrinkers`]: until 3.0 dentries, inodes and XFS's evicted inodes have a shrinker each; the first two
//! count whole hundreds.
//! Abstracted: one shrinker for all superblocks. What XFS frees is not counted as freed, as in the kernel.
//! Since 4.0 dentries and inodes are listed by the group that they are charged to (`super_cache_count()` with
//! `SHRINKER_MEMCG_AWARE`).
//! A list takes what is new at its tail, and a scan begins at its head (mm/list_lru.c, 4.20).

use rules::VfsShrinkers;
use units::Gfp;

use super::{Scanned, Share};
use crate::{Env, Mm};

/// What can be shrunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ShrinkerId {
    /// Dentries and inodes of all file systems.
    Superblock,
    /// What ext4 remembers of extents.
    ExtentStatus,
    /// Buffers of file system metadata.
    XfsBuf,
    /// Radix tree nodes that hold only shadow entries.
    ShadowNodes,
    /// Those of the swap cache.
    SwapShadowNodes,
    /// Dentries alone.
    Dentries,
    /// Inodes alone.
    Inodes,
    /// Inodes that XFS has evicted, alone.
    XfsInodes,
    /// Compressed pages in zswap.
    Zswap,
}

/// What the core of shrinking must know of a shrinker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShrinkerSpec {
    /// Which one.
    pub id: ShrinkerId,
    /// Seeks to recreate an object (`shrinker->seeks`).
    pub seeks: u64,
    /// Objects of a call (`shrinker->batch`, 128 where it is 0).
    pub batch: u64,
    /// It is called for the objects of each memory cgroup by itself (`SHRINKER_MEMCG_AWARE`); others for all, with the root's.
    pub by_memcg: bool,
}

/// All shrinkers of all kernels, in the order of their registration; one that a kernel lacks has nothing to free.
pub const SHRINKERS: [ShrinkerSpec; 9] = [
    ShrinkerSpec { id: ShrinkerId::ShadowNodes, seeks: 2, batch: 128, by_memcg: true },
    ShrinkerSpec { id: ShrinkerId::SwapShadowNodes, seeks: 2, batch: 128, by_memcg: false },
    ShrinkerSpec { id: ShrinkerId::Superblock, seeks: 2, batch: 1024, by_memcg: true },
    ShrinkerSpec { id: ShrinkerId::ExtentStatus, seeks: 2, batch: 128, by_memcg: false },
    ShrinkerSpec { id: ShrinkerId::XfsBuf, seeks: 2, batch: 128, by_memcg: false },
    ShrinkerSpec { id: ShrinkerId::Dentries, seeks: 2, batch: 128, by_memcg: false },
    ShrinkerSpec { id: ShrinkerId::Inodes, seeks: 2, batch: 128, by_memcg: false },
    ShrinkerSpec { id: ShrinkerId::XfsInodes, seeks: 2, batch: 128, by_memcg: false },
    ShrinkerSpec { id: ShrinkerId::Zswap, seeks: 2, batch: 128, by_memcg: false },
];

/// `x * n / d` without overflow (`mult_frac()`).
fn mult_frac(x: u64, n: u64, d: u64) -> u64 {
    (u128::from(x) * u128::from(n) / u128::from(d)) as u64
}

/// Dentries that one file system is to give for a scan of `nr`, of `unused` dentries that are all its own (`prune_dcache()`): by a
/// ratio without fractions, and one more.
fn fair_share(nr: u64, unused: u64) -> u64 {
    match unused / nr.max(1) {
        0 | 1 => unused,
        ratio => unused / ratio + 1,
    }
}

impl Mm {
    /// Objects of a share that a shrinker offers to free.
    pub fn shrinker_count(&mut self, id: ShrinkerId, share: Share) -> u64 {
        let node = share.node;
        let apart = self.rules.vfs_shrinkers == VfsShrinkers::Apart;
        let [dentries, inodes, evicted] = self.superblock_objects(share);
        let hundreds = |n: u64| n / 100 * self.tunables.vfs_cache_pressure;
        match id {
            ShrinkerId::Superblock if !apart => {
                mult_frac(dentries + inodes + evicted, self.tunables.vfs_cache_pressure, 100)
            }
            ShrinkerId::Dentries if apart => hundreds(dentries),
            ShrinkerId::Inodes if apart => hundreds(inodes),
            ShrinkerId::XfsInodes if apart => evicted,
            ShrinkerId::Superblock | ShrinkerId::Dentries | ShrinkerId::Inodes | ShrinkerId::XfsInodes => 0,
            ShrinkerId::ExtentStatus => self.vfs.statuses.shrinkable,
            ShrinkerId::XfsBuf => self.vfs.buffer_lru.get(node.index()).map_or(0, |l| u64::from(l.len())),
            ShrinkerId::ShadowNodes => self.shadow_nodes_count(share),
            ShrinkerId::SwapShadowNodes => self.swap_shadow_nodes_count(node),
            ShrinkerId::Zswap => self.zswap_count(node),
        }
    }

    /// Dentries and inodes of a share, and the evicted inodes of file systems, which know no share.
    fn superblock_objects(&self, share: Share) -> [u64; 3] {
        let at = share.index(self.vfs.nodes);
        let dentries = self.vfs.dentry_lru.get(at).map_or(0, |l| u64::from(l.len()));
        let inodes = self.vfs.inode_lru.get(at).map_or(0, |l| u64::from(l.len()));
        [dentries, inodes, self.vfs.reclaimable_inodes()]
    }

    /// Lets a shrinker look at `nr` objects of a share.
    pub fn shrinker_scan(&mut self, env: &Env, id: ShrinkerId, share: Share, nr: u64, gfp: Gfp) -> Scanned {
        let node = share.node;
        match id {
            ShrinkerId::ShadowNodes => self.shadow_nodes_scan(env, share, nr),
            ShrinkerId::SwapShadowNodes => self.swap_shadow_nodes_scan(node, nr),
            ShrinkerId::XfsBuf if node.index() < self.vfs.buffer_lru.len() => self.shrink_buffers(env, node, nr),
            ShrinkerId::XfsBuf => Scanned::default(),
            ShrinkerId::ExtentStatus => self.shrink_statuses(env, nr),
            ShrinkerId::Zswap => self.zswap_scan(env, nr, gfp),
            _ if !gfp.contains(Gfp::FS) || self.vfs.fs.is_empty() => Scanned::default(),
            ShrinkerId::Superblock => self.superblock_scan(env, share, nr),
            ShrinkerId::Dentries => {
                let share_of_all = fair_share(nr, self.superblock_objects(share)[0]);
                Scanned { scanned: nr, freed: self.prune_dentries(env, share, share_of_all), evicted: 0 }
            }
            ShrinkerId::Inodes => Scanned { scanned: nr, freed: self.prune_inodes(env, share, nr), evicted: 0 },
            ShrinkerId::XfsInodes => Scanned { scanned: nr, freed: 0, evicted: self.reclaim_inodes_nr(nr) },
        }
    }

    fn superblock_scan(&mut self, env: &Env, share: Share, nr: u64) -> Scanned {
        let objects = self.superblock_objects(share);
        let total = objects.iter().sum::<u64>() + 1;
        let [dentries, inodes, evicted] = objects.map(|n| mult_frac(nr, n, total));
        let mut freed = self.prune_dentries(env, share, dentries + 1);
        freed += self.prune_inodes(env, share, inodes + 1);
        let evicted = if evicted > 0 { self.reclaim_inodes_nr(evicted + 1) } else { 0 };
        Scanned { scanned: nr, freed, evicted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_system_gives_a_scan_and_one_more_or_all_that_it_has() {
        // 128 goes into 255 once, into 256 twice, into 1000 seven times.
        assert_eq!([0, 127, 128, 255].map(|unused| fair_share(128, unused)), [0, 127, 128, 255]);
        assert_eq!([256, 1000].map(|unused| fair_share(128, unused)), [256 / 2 + 1, 1000 / 7 + 1]);
    }
}
