//! How large a slab is, and how many empty or partial ones a cache keeps.
//!
//! Rule: a slab should hold `4 * (fls(cpus) + 1)` objects and waste at most 1/16 of itself; the smallest order up to
//! 3 that does so wins. If none does, more waste (1/8, 1/4) is accepted; what is given up after that depends on
//! [`SlabOrder`]. An object that does not fit order 3 gets the order that holds one.
//! Source: `calculate_order()`, `slab_order()`, `set_min_partial()`, `set_cpu_partial()`, mm/slub.c, 4.20 and 6.12.
//! Since/until: [`SlabOrder::FewerObjects`] until 6.6, [`SlabOrder::MoreWaste`] since; [`CpuPartial`] since 5.16.
//! Abstracted: nothing. Omitted: `slub_min_order`, `slub_max_order` and `slub_min_objects` on the command line.

use rules::{CpuPartial, SlabOrder};
use units::{Order, PAGE_SIZE};

/// Largest order that is chosen for more than one object (`slub_max_order`).
const SLUB_MAX_ORDER: u8 = 3;
/// More objects than this cannot be counted in a slab (`MAX_OBJS_PER_PAGE`).
const MAX_OBJECTS: u32 = 32_767;

/// Objects of `size` bytes in a slab of this order.
pub(super) fn order_objects(order: Order, size: u32) -> u32 {
    (PAGE_SIZE as u32 * order.pages()) / size
}

/// Smallest order that holds `bytes` (`get_order()`).
pub(super) fn get_order(bytes: u32) -> Order {
    let pages = u64::from(bytes).div_ceil(PAGE_SIZE).max(1);
    Order(pages.next_power_of_two().trailing_zeros() as u8)
}

/// Bits needed to write `n` (`fls()`).
fn fls(n: usize) -> u32 {
    usize::BITS - n.leading_zeros()
}

/// Smallest order from `from` to 3 that wastes at most one part in `fraction`.
fn order_with_waste(size: u32, from: Order, fraction: u32) -> Option<Order> {
    (from.0..=SLUB_MAX_ORDER).map(Order).find(|order| {
        let bytes = PAGE_SIZE as u32 * order.pages();
        bytes % size <= bytes / fraction
    })
}

/// Order of the slabs of a cache whose objects take `size` bytes, on a machine with so many CPUs.
pub(super) fn calculate_order(size: u32, nr_cpus: usize, rule: SlabOrder) -> Order {
    assert!(size >= 8, "a slab object takes at least 8 bytes, not {size}");
    let largest = order_objects(Order(SLUB_MAX_ORDER), size).max(1);
    let mut min_objects = (4 * (fls(nr_cpus) + 1)).min(largest);
    debug_assert!(order_objects(Order(0), size) <= MAX_OBJECTS);
    if rule == SlabOrder::MoreWaste {
        let from = get_order(min_objects * size);
        return [16, 8, 4, 2]
            .into_iter()
            .find_map(|f| order_with_waste(size, from, f))
            .unwrap_or_else(|| get_order(size));
    }
    while min_objects > 1 {
        let from = get_order(min_objects * size);
        if let Some(order) = [16, 8, 4].into_iter().find_map(|f| order_with_waste(size, from, f)) {
            return order;
        }
        min_objects -= 1;
    }
    get_order(size)
}

/// Partial slabs with which a node keeps no more that are empty as a CPU gives them up: log2(size) / 2, from 5 to 10; all of
/// log2(size) before CPUs had lists, and one more in 3.1.
pub(super) fn min_partial(size: u32, rule: CpuPartial) -> u32 {
    let log = size.ilog2();
    match rule {
        CpuPartial::None => log.clamp(5, 10),
        CpuPartial::NodesKeep => log.clamp(5, 10) + 1,
        CpuPartial::Objects | CpuPartial::Slabs => (log / 2).clamp(5, 10),
    }
}

/// The same for slabs that become empty on its list.
pub(super) fn keep_freed(size: u32, rule: CpuPartial) -> u32 {
    if rule == CpuPartial::None { 0 } else { min_partial(size, rule) }
}

/// How much a CPU keeps beside its slab before it hands the lot to the nodes: free objects or slabs, by the rule.
pub(super) fn cpu_partial(size: u32, objects: u32, rule: CpuPartial) -> u32 {
    let class = match size {
        4096.. => 0,
        1024.. => 1,
        256.. => 2,
        _ => 3,
    };
    match rule {
        CpuPartial::None | CpuPartial::NodesKeep => 0,
        CpuPartial::Objects => [2, 6, 13, 30][class],
        CpuPartial::Slabs => (2 * [6u32, 24, 52, 120][class]).div_ceil(objects),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(size, objperslab, pagesperslab)` of /proc/slabinfo of a 6.12 guest with one CPU.
    const SLABINFO_612: [(u32, u32, u32); 30] = [
        (152, 26, 1),
        (3240, 10, 8),
        (2888, 11, 8),
        (2176, 15, 8),
        (384, 10, 1),
        (1216, 13, 4),
        (2624, 12, 8),
        (896, 9, 2),
        (1168, 14, 4),
        (576, 14, 2),
        (832, 19, 4),
        (616, 13, 2),
        (968, 8, 2),
        (4096, 8, 8),
        (2048, 8, 4),
        (640, 12, 2),
        (704, 11, 2),
        (1600, 10, 4),
        (760, 21, 4),
        (632, 25, 4),
        (192, 21, 1),
        (4480, 7, 8),
        (432, 9, 1),
        (6208, 5, 8),
        (1408, 11, 4),
        (584, 14, 2),
        (104, 39, 1),
        (8192, 4, 8),
        (512, 8, 1),
        (8, 512, 1),
    ];

    #[test]
    fn orders_are_those_of_slabinfo_on_6_12() {
        for (size, objects, pages) in SLABINFO_612 {
            let order = calculate_order(size, 1, SlabOrder::MoreWaste);
            assert_eq!((order.pages(), order_objects(order, size)), (pages, objects), "size {size}");
        }
    }

    #[test]
    fn many_cpus_ask_for_more_objects() {
        // 80 CPUs: fls(80) = 7, 4 * 8 = 32 objects; 32 * 960 = 30720 needs order 3, which holds 34.
        let order = calculate_order(960, 80, SlabOrder::FewerObjects);
        assert_eq!((order, order_objects(order, 960)), (Order(3), 34));
        // 8 CPUs: fls(8) = 4, 20 objects; 20 * 960 = 19200 needs order 3 as well; 2 CPUs: 12 * 960 = 11520, order 2,
        // 16384 % 960 = 64 <= 1024.
        assert_eq!(calculate_order(960, 8, SlabOrder::FewerObjects), Order(3));
        assert_eq!(calculate_order(960, 2, SlabOrder::FewerObjects), Order(2));
        // dentry: 20 * 192 = 3840 fits a page (21, waste 64); 32 * 192 = 6144 needs order 1.
        assert_eq!(calculate_order(192, 8, SlabOrder::FewerObjects), Order(0));
        assert_eq!(calculate_order(192, 80, SlabOrder::FewerObjects), Order(1));
    }

    #[test]
    fn a_wasteful_size_gives_up_objects_in_one_rule_and_waste_in_the_other() {
        // 6208 B: 5 fit 32768, waste 1728 = 1/18. 11000 B: 2 fit, waste 10768 > 1/4, only one object or any waste:
        // FewerObjects: from min_objects 1: get_order(11000) = order 2. MoreWaste: 1/2 accepts order 3 from 2 objects.
        assert_eq!(calculate_order(11_000, 1, SlabOrder::FewerObjects), Order(2));
        assert_eq!(calculate_order(11_000, 1, SlabOrder::MoreWaste), Order(3));
        assert_eq!(calculate_order(40_000, 1, SlabOrder::MoreWaste), Order(4));
    }

    #[test]
    fn what_is_kept_grows_with_the_object() {
        let kept = |rule| [8, 1024, 4096, 1 << 20].map(|size| (min_partial(size, rule), keep_freed(size, rule)));
        assert_eq!(kept(CpuPartial::Objects), [(5, 5), (5, 5), (6, 6), (10, 10)]);
        assert_eq!(kept(CpuPartial::NodesKeep), [(6, 6), (11, 11), (11, 11), (11, 11)]);
        assert_eq!(kept(CpuPartial::None), [(5, 0), (10, 0), (10, 0), (10, 0)]);
        assert_eq!([192, 256, 1024, 4096].map(|s| cpu_partial(s, 32, CpuPartial::Objects)), [30, 13, 6, 2]);
        // 2 * 120 / 21 = 11.4, rounded up.
        assert_eq!(cpu_partial(192, 21, CpuPartial::Slabs), 12);
    }
}
