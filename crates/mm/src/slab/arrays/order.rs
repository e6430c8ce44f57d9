//! How large SLAB's slabs are, and how many free objects its arrays hold.
//!
//! Rule: the smallest order that wastes at most an eighth of the slab, order 1 in any case if it holds an object; caches that a shrinker
//! frees take the smallest that holds one, so that they do not need more than a page. Objects share a slab with what manages it: a
//! descriptor and a number for each, later a byte for each; large objects have that outside. A CPU keeps the fewer free objects the larger
//! they are, and moves them by halves of what it may keep.
//! Source: `calculate_slab_order()`, `cache_estimate()`, `enable_cpucache()`, `init_cache_node()`, mm/slab.c, 3.1, 3.19 and 4.20.
//! Since/until: [`SlabAllocator`].
//! Abstracted: which objects are so large that they are managed from outside (512 bytes until 3.12, 128 later; from 4.6 on a free object
//! holds the numbers). Omitted: machines of less than 32 MiB, which stay at order 0; caches above 128 KiB, whose objects are not kept.

use rules::SlabAllocator;
use units::{Order, PAGE_SIZE};

use super::super::{CacheSpec, Layout};

/// Largest order for the sake of less waste (`SLAB_MAX_ORDER_HI`).
const MAX_ORDER: Order = Order(1);
/// `struct slab` and its alignment.
const DESCRIPTOR: u32 = 48;
/// `kmem_bufctl_t`.
const NUMBER: u32 = 4;
/// Since 3.15 (`freelist_idx_t`).
const INDEX: u32 = 1;

/// How the slabs of a cache are laid out.
pub(in super::super) fn layout(spec: &CacheSpec, rule: SlabAllocator) -> Layout {
    let (footprint, head) = match rule {
        SlabAllocator::SlabDescriptor if spec.size < 512 => (spec.size + NUMBER, DESCRIPTOR),
        SlabAllocator::SlabIndex | SlabAllocator::SlabExactNode if spec.size < 128 => (spec.size + INDEX, 0),
        _ => (spec.size, 0),
    };
    let fits = |order: &Order| {
        let bytes = PAGE_SIZE as u32 * order.pages();
        let objects = (bytes - head) / footprint;
        let left = bytes - head - objects * footprint;
        objects > 0 && (spec.reclaimable || *order >= MAX_ORDER || left * 8 <= bytes)
    };
    let order = (0..=Order::MAX.0).map(Order).find(fits).unwrap_or(Order::MAX);
    Layout { order, min_order: order, footprint, head }
}

/// Free objects that a CPU keeps at most.
pub(super) fn limit(size: u32) -> u32 {
    match size {
        4097.. => 8,
        1025.. => 24,
        257.. => 54,
        _ => 120,
    }
}

/// Batches that the CPU of a node share (`shared`).
pub(super) fn shared(size: u32, nr_cpus: usize) -> u32 {
    if u64::from(size) <= PAGE_SIZE && nr_cpus > 1 { 8 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::super::ObjectKind;
    use super::*;

    fn order_and_objects(size: u32, reclaimable: bool, rule: SlabAllocator) -> (u8, u32) {
        let layout =
            layout(&CacheSpec { name: "objects", size, reclaimable, accounted: false, kind: ObjectKind::Plain }, rule);
        (layout.order.0, layout.objects(layout.order))
    }

    /// `(size, objperslab, pagesperslab, limit)` of /proc/slabinfo of a guest of 3.1-rc1 with SLAB; all its 107 caches up to 8 KiB agree, ext3's
    /// inodes (696 bytes) and ext4_io_end (1128) as caches that a shrinker frees.
    const SLABINFO_31: [(u32, u32, u32, u32); 50] = [
        (16, 202, 1, 120),
        (24, 144, 1, 120),
        (32, 112, 1, 120),
        (40, 92, 1, 120),
        (48, 77, 1, 120),
        (56, 67, 1, 120),
        (64, 59, 1, 120),
        (72, 53, 1, 120),
        (80, 48, 1, 120),
        (104, 37, 1, 120),
        (112, 34, 1, 120),
        (128, 30, 1, 120),
        (136, 28, 1, 120),
        (144, 27, 1, 120),
        (160, 24, 1, 120),
        (168, 23, 1, 120),
        (176, 22, 1, 120),
        (192, 20, 1, 120),
        (200, 19, 1, 120),
        (208, 19, 1, 120),
        (216, 18, 1, 120),
        (224, 17, 1, 120),
        (232, 17, 1, 120),
        (256, 15, 1, 120),
        (280, 14, 1, 54),
        (320, 12, 1, 54),
        (328, 12, 1, 54),
        (360, 11, 1, 54),
        (384, 10, 1, 54),
        (400, 10, 1, 54),
        (448, 8, 1, 54),
        (488, 8, 1, 54),
        (512, 8, 1, 54),
        (544, 7, 1, 54),
        (560, 7, 1, 54),
        (576, 7, 1, 54),
        (704, 11, 2, 54),
        (768, 5, 1, 54),
        (792, 5, 1, 54),
        (832, 9, 2, 54),
        (896, 4, 1, 54),
        (960, 4, 1, 54),
        (1024, 4, 1, 54),
        (1456, 5, 2, 24),
        (1568, 5, 2, 24),
        (2048, 2, 1, 24),
        (2112, 3, 2, 24),
        (3240, 2, 2, 24),
        (4096, 1, 1, 24),
        (8192, 1, 2, 8),
    ];

    #[test]
    fn slabs_and_limits_are_those_of_slabinfo_on_3_1() {
        for (size, objects, pages, most) in SLABINFO_31 {
            let (order, held) = order_and_objects(size, false, SlabAllocator::SlabDescriptor);
            assert_eq!((held, 1 << order, limit(size)), (objects, pages, most), "{size} bytes");
        }
        let reclaimable = [696, 1128].map(|size| order_and_objects(size, true, SlabAllocator::SlabDescriptor));
        assert_eq!(reclaimable, [(0, 5), (0, 3)]);
    }

    #[test]
    fn what_shrinkers_free_takes_single_pages_and_nothing_more_than_two_for_less_waste() {
        let rule = SlabAllocator::SlabExactNode;
        // xfs_inode, ext4_inode_cache, radix_tree_node: SLUB has slabs of 4 or 8 pages of them.
        assert_eq!([960, 1080, 584].map(|size| order_and_objects(size, true, rule)), [(0, 4), (0, 3), (0, 7)]);
        // mm_struct: three in a page waste 832 of 4096; seven in two, 576 of 8192, less than an eighth.
        assert_eq!(order_and_objects(1088, false, rule), (1, 7));
        // task_struct: one in two pages wastes more than a quarter, and the order stays.
        assert_eq!(order_and_objects(5952, false, rule), (1, 1));
        // 3000 of 4096 and 2 of 8192 waste more than an eighth; order 1 is taken.
        assert_eq!(order_and_objects(3000, false, rule), (1, 2));
        assert_eq!([4096, 8192].map(|size| order_and_objects(size, false, rule)), [(0, 1), (1, 1)]);
    }

    #[test]
    fn small_objects_share_the_slab_with_what_manages_it() {
        let objects = |size, rule| order_and_objects(size, true, rule).1;
        // Dentries of 192 bytes: (4096 - 48) / 196, and 4096 / 192 with the bytes outside.
        assert_eq!([SlabAllocator::SlabDescriptor, SlabAllocator::SlabIndex].map(|rule| objects(192, rule)), [20, 21]);
        // Buffer heads of 104 bytes: 4048 / 108 and 4096 / 105.
        assert_eq!(
            [SlabAllocator::SlabDescriptor, SlabAllocator::SlabExactNode].map(|rule| objects(104, rule)),
            [37, 39]
        );
    }

    #[test]
    fn a_cpu_keeps_fewer_of_larger_objects() {
        assert_eq!([64, 256, 257, 1024, 1025, 4096, 4097].map(limit), [120, 120, 54, 54, 24, 24, 8]);
        assert_eq!([shared(4096, 4), shared(4096, 1), shared(8192, 4)], [8, 0, 0]);
    }
}
