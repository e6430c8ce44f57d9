//! Which caches share slabs.
//!
//! Rule: a cache that is created is served by one that there is already, if that has objects of its size (or up to a word larger), both
//! are reclaimable or neither is, and nothing tells their objects apart: no constructor, no reader that finds them after they are freed
//! (`SLAB_TYPESAFE_BY_RCU`). So kmalloc-256, files and vectors of bios are one cache until 4.15, and whoever frees one leaves
//! room for the others, memory or none.
//! Source: `find_mergeable()`, `slab_unmergeable()`, `SLAB_NEVER_MERGE`, `SLAB_MERGE_SAME`, mm/slub.c (2.6.39), mm/slab_common.c (since 3.18; 5.10, 6.12). Guests of 5.10, 6.1
//! and 6.12 list neither biovec-16 nor bio-0 nor jbd2_inode.
//! Since/until: [`SlabMerging`].
//! Abstracted: which of several fit (they are merged with each other).
//! Omitted: that SLAB wants the alignment to fit as well; caches that nothing here allocates from, whose free objects are of use to others.

use rules::SlabMerging;

use super::{CacheSpec, ObjectKind, Slabs};

/// Bytes by which an object may be smaller than the place that it gets: less than a word.
const WORD: u32 = size_of::<u64>() as u32;

/// Whether a cache may share slabs at all.
fn is_mergeable(kind: ObjectKind, rule: SlabMerging) -> bool {
    match rule {
        SlabMerging::Never => false,
        SlabMerging::BySize | SlabMerging::ByAccount => kind != ObjectKind::Constructed,
        SlabMerging::UnlessCopied => kind == ObjectKind::Plain,
    }
}

/// Whether objects of a new cache can be served by another.
fn serves(other: &CacheSpec, new: &CacheSpec, rule: SlabMerging) -> bool {
    [other, new].into_iter().all(|spec| is_mergeable(spec.kind, rule))
        && other.size.checked_sub(new.size).is_some_and(|rest| rest < WORD)
        && other.reclaimable == new.reclaimable
        && (rule == SlabMerging::BySize || other.accounted == new.accounted)
}

impl Slabs {
    /// Which of the caches with slabs serves a new one, if one can.
    pub(super) fn find_mergeable(&self, new: &CacheSpec, rule: SlabMerging) -> Option<usize> {
        self.caches.iter().position(|cache| serves(&cache.spec, new, rule))
    }
}

#[cfg(test)]
mod tests {
    use rules::{Rules, SlabAllocator, StructSizes};

    use super::super::tests::{alloc, assert_valid, exhaust, machine, on, rules_2_6_39};
    use super::super::{CacheId, caches};
    use super::*;
    use crate::Mm;
    use units::Gfp;

    fn with(rule: SlabMerging, struct_sizes: StructSizes) -> Mm {
        machine(1, 1 << 14, Rules { slab_merging: rule, struct_sizes, ..rules_2_6_39() })
    }

    fn share(mm: &Mm, a: CacheId, b: CacheId) -> bool {
        std::ptr::eq(mm.slabs.cache(a), mm.slabs.cache(b))
    }

    #[test]
    fn size_account_and_copying_separate_caches_by_version() {
        let sizes = StructSizes::Linux420;
        let shared = [
            // Vectors of 256 B, not accounted; files of 256 B, accounted; both 192 B, copied and not.
            (CacheId::KMALLOC_256, CacheId::BIOVEC_16, [false, true, true, false]),
            (CacheId::KMALLOC_256, CacheId::FILP, [false, true, false, false]),
            (CacheId::BIO, CacheId::XFS_ILI, [false, true, true, true]),
            // A constructor; what can be reclaimed; sizes.
            (CacheId::SHMEM_INODE, CacheId::FILES, [false; 4]),
            (CacheId::DENTRY, CacheId::KMALLOC_192, [false; 4]),
            (CacheId::KMALLOC_96, CacheId::BUFFER_HEAD, [false; 4]),
        ];
        let rules = [SlabMerging::Never, SlabMerging::BySize, SlabMerging::ByAccount, SlabMerging::UnlessCopied];
        for (n, rule) in rules.into_iter().enumerate() {
            let mm = with(rule, sizes);
            for (a, b, expected) in shared {
                assert_eq!(share(&mm, a, b), expected[n], "{a:?} {b:?} {rule:?}");
            }
            let names = mm.slabs.slabinfo().count();
            assert_eq!(names == caches::table(sizes).len(), rule == SlabMerging::Never, "{rule:?}");
        }
    }

    #[test]
    fn an_object_fits_a_place_that_is_less_than_a_word_larger() {
        let spec = |size| CacheSpec { name: "x", size, reclaimable: false, accounted: false, kind: ObjectKind::Plain };
        let fits = |place, object| serves(&spec(place), &spec(object), SlabMerging::BySize);
        assert_eq!([72, 71, 65, 64, 80].map(|object| fits(72, object)), [true, true, true, false, false]);
    }

    #[test]
    fn what_one_frees_serves_the_other_without_memory() {
        for (rule, served) in [(SlabMerging::BySize, 15), (SlabMerging::Never, 0)] {
            let mut mm = with(rule, StructSizes::Linux420);
            // A page of 16 files; one of them stays open.
            let files: Vec<_> = (0..16).map(|_| alloc(&mut mm, 0, CacheId::FILP)).collect();
            exhaust(&mut mm, None);
            files[1..].iter().for_each(|file| mm.slab_free(&on(0), CacheId::FILP, *file));
            let mut alloc = || mm.slab_alloc(&on(0), CacheId::BIOVEC_16, Gfp::NOFS).ok();
            let vectors: Vec<_> = std::iter::from_fn(&mut alloc).collect();
            assert_eq!(vectors.len(), served, "{rule:?}");
            assert_valid(&mm);
            vectors.iter().for_each(|vector| mm.slab_free(&on(0), CacheId::BIOVEC_16, *vector));
            mm.slab_free(&on(0), CacheId::FILP, files[0]);
            assert_valid(&mm);
        }
    }

    #[test]
    fn caches_of_slab_share_as_well() {
        let rules = Rules {
            slab_merging: SlabMerging::UnlessCopied,
            slab_allocator: SlabAllocator::SlabExactNode,
            struct_sizes: StructSizes::Linux420,
            ..rules_2_6_39()
        };
        let mut mm = machine(1, 1 << 14, rules);
        let item = alloc(&mut mm, 0, CacheId::XFS_ILI);
        let bio = alloc(&mut mm, 0, CacheId::BIO);
        assert_eq!(mm.slabs.pfn_of(CacheId::XFS_ILI, item), mm.slabs.pfn_of(CacheId::BIO, bio));
        mm.slab_free(&on(0), CacheId::BIO, bio);
        mm.slab_free(&on(0), CacheId::XFS_ILI, item);
        assert_valid(&mm);
    }
}
