//! Slabs on small machines.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rules::{
    CpuPartial, ObjectAccounting, Rules, SlabOrder, SlabSpeculation, StructSizes, Tunables, WatermarkBoost,
    ZoneSpreading,
};
use units::{CpuId, Gfp, Nanos, NodeId, Order, Pages, Pfn};

use super::{CacheId, CacheSpec, Obj};
use crate::stat::NodeStat;
use crate::zone::{AllocFlags, Wmark};
use crate::{AllocRequest, Costs, Env, Kind, MemoryLayout, Mm, NodeSpec, TaskFlags, ZoneKind, ZoneSpan};

/// A machine of `nodes` nodes with so many pages each, and two CPUs a node.
pub(crate) fn machine(nodes: u32, pages: u32, rules: Rules) -> Mm {
    let node = |n: u32| NodeSpec {
        zones: vec![ZoneSpan {
            kind: ZoneKind::Normal,
            start: Pfn(n * pages),
            spanned: Pages(u64::from(pages)),
            present: Pages(u64::from(pages)),
            managed: Pages(u64::from(pages)),
            hole: None,
        }],
        distance: (0..nodes).map(|other| if other == n { 10 } else { 20 }).collect(),
    };
    let cpu_nodes = (0..2 * nodes).map(|cpu| NodeId((cpu / 2) as u8)).collect();
    let layout = MemoryLayout { nodes: (0..nodes).map(node).collect(), cpu_nodes };
    Mm::new(&layout, rules, Tunables::default(), Costs::default())
}

/// A caller on a CPU of such a machine.
pub(crate) fn on(cpu: u16) -> Env {
    Env { now: Nanos::ZERO, cpu: CpuId(cpu), node: NodeId((cpu / 2) as u8), task: TaskFlags::default() }
}

/// The rules of 4.20 that concern slabs and their pages.
pub(crate) fn rules_4_20() -> Rules {
    Rules {
        large_folios: rules::LargeFolios::Never,
        large_migration: rules::LargeMigration::Never,
        slab_order: SlabOrder::FewerObjects,
        cpu_partial: CpuPartial::Objects,
        struct_sizes: StructSizes::Linux420,
        watermark_boost: WatermarkBoost::Off,
        zone_spreading: ZoneSpreading::Off,
        ..Rules::newest()
    }
}

/// The rules of 2.6.39, and of 3.1.
pub(crate) fn rules_2_6_39() -> Rules {
    Rules { cpu_partial: CpuPartial::None, slab_speculation: SlabSpeculation::Reclaims, ..rules_4_20() }
}

pub(crate) fn rules_3_1() -> Rules {
    Rules { cpu_partial: CpuPartial::NodesKeep, ..rules_2_6_39() }
}

pub(crate) fn assert_valid(mm: &Mm) {
    let mut violations = Vec::new();
    mm.validate_slab(&mut violations);
    mm.validate_vfs(&mut violations);
    mm.validate_zone(&mut violations);
    mm.validate_pagecache(&mut violations);
    assert!(violations.is_empty(), "{violations:?}");
}

pub(crate) fn alloc(mm: &mut Mm, cpu: u16, cache: CacheId) -> Obj {
    mm.slab_alloc(&on(cpu), cache, Gfp::KERNEL).expect("memory is plentiful")
}

fn slab_pages(mm: &Mm) -> u64 {
    mm.stat.node_sum(NodeStat::SlabReclaimable) + mm.stat.node_sum(NodeStat::SlabUnreclaimable)
}

/// Takes all free pages singly, down to a watermark or to nothing.
pub(crate) fn exhaust(mm: &mut Mm, wmark: Option<Wmark>) -> Vec<Pfn> {
    let request = AllocRequest { gfp: Gfp::KERNEL, order: Order(0), node: NodeId(0) };
    let flags = AllocFlags { wmark, ..AllocFlags::only(Wmark::Min) };
    std::iter::from_fn(|| mm.get_page_from_freelist(&on(1), request, flags)).collect()
}

#[test]
fn one_object_a_slab_keeps_every_page() {
    let mut mm = machine(1, 1 << 15, rules_4_20());
    // 2 CPUs: 12 objects of 960 B ask for order 2: 17 a slab. 100 slabs are 400 pages.
    let objects: Vec<Obj> = (0..1700).map(|_| alloc(&mut mm, 0, CacheId::XFS_INODE)).collect();
    assert_eq!(mm.stat.node_sum(NodeStat::SlabReclaimable), 400);
    for (_, obj) in objects.iter().enumerate().filter(|(n, _)| n % 17 != 5) {
        mm.slab_free(&on(0), CacheId::XFS_INODE, *obj);
    }
    assert_eq!(mm.stat.node_sum(NodeStat::SlabReclaimable), 400, "94 % of the objects are free, and no page");
    assert_valid(&mm);
    // The last object of each: the node keeps min_partial = 5 slabs, a CPU its own and its partial ones (each
    // counted with one free object when it came, at most 13 + 1).
    for obj in objects.iter().skip(5).step_by(17) {
        mm.slab_free(&on(0), CacheId::XFS_INODE, *obj);
    }
    let kept = mm.stat.node_sum(NodeStat::SlabReclaimable) / 4;
    assert!((5..=5 + 1 + 14).contains(&kept), "{kept} slabs are kept");
    assert_valid(&mm);
}

#[test]
fn pages_are_of_the_type_and_owner_of_their_cache() {
    let mut mm = machine(1, 1 << 15, rules_4_20());
    let dentry = alloc(&mut mm, 0, CacheId::DENTRY);
    let filp = alloc(&mut mm, 0, CacheId::FILP);
    let pfns = [mm.slabs.pfn_of(CacheId::DENTRY, dentry), mm.slabs.pfn_of(CacheId::FILP, filp)];
    assert!(pfns.iter().all(|p| mm.frames[*p].kind() == Kind::Slab));
    assert_eq!(pfns.map(|p| mm.frames[p].cache()), [CacheId::DENTRY, CacheId::FILP]);
    assert_eq!(mm.blocks.migratetype(pfns[0]), crate::MigrateType::Reclaimable);
    assert_eq!(mm.blocks.migratetype(pfns[1]), crate::MigrateType::Unmovable);
    // dentry: 21 in one page; filp: 12 x 256 B fit one page with 16.
    assert_eq!([NodeStat::SlabReclaimable, NodeStat::SlabUnreclaimable].map(|s| mm.stat.node_sum(s)), [1, 1]);
}

#[test]
fn without_large_blocks_a_slab_is_of_the_least_order() {
    let mut mm = machine(1, 1 << 12, rules_4_20());
    // Every second page back: free memory is single pages.
    for pfn in exhaust(&mut mm, None).iter().filter(|p| p.0 % 2 == 0) {
        mm.free_pages(&on(1), *pfn, Order(0));
    }
    mm.effects.take_into(&mut Vec::new());
    let obj = alloc(&mut mm, 0, CacheId::XFS_INODE);
    assert_eq!(mm.frames[mm.slabs.pfn_of(CacheId::XFS_INODE, obj)].order(), Order(0));
    assert_eq!(mm.slabs.order_fallbacks(), 1);
    let mut effects = Vec::new();
    mm.effects.take_into(&mut effects);
    let woken = effects.iter().any(|e| matches!(e, crate::Effect::WakeKswapd(_)));
    assert!(!woken, "the speculative attempt wakes nobody: {effects:?}");
}

#[test]
fn a_request_for_the_slow_path_is_of_the_least_order_and_full_effort() {
    let mut mm = machine(1, 1 << 12, rules_4_20());
    let held = exhaust(&mut mm, Some(Wmark::Min));
    let missing = mm.slab_alloc(&on(0), CacheId::XFS_INODE, Gfp::KERNEL).expect_err("at the min watermark").pages;
    let gfp = Gfp::KERNEL.with(Gfp::COMP).with(Gfp::RECLAIMABLE);
    assert_eq!(missing, AllocRequest { gfp, order: Order(0), node: NodeId(0) });
    // Between min and low the speculative attempt of order 2 is still served, by its second walk; below, the slow
    // path has to bring pages.
    for pfn in &held[..16] {
        mm.free_pages(&on(0), *pfn, Order(0));
    }
    mm.drain_pcp_all();
    let flags = mm.gfp_to_alloc_flags(&on(0), missing);
    let pfn = mm.get_page_from_freelist(&on(0), missing, flags).expect("16 pages came free");
    mm.slab_add_page(&on(0), CacheId::XFS_INODE, pfn);
    let obj = alloc(&mut mm, 0, CacheId::XFS_INODE);
    assert_eq!(mm.slabs.pfn_of(CacheId::XFS_INODE, obj), pfn);
}

#[test]
fn until_4_1_the_request_for_the_slow_path_is_of_the_preferred_order_and_has_a_fallback() {
    let mut mm = machine(1, 1 << 12, rules_2_6_39());
    exhaust(&mut mm, Some(Wmark::Min));
    let missing = mm.slab_alloc(&on(0), CacheId::XFS_INODE, Gfp::KERNEL).expect_err("at the min watermark");
    let gfp = Gfp::KERNEL.with(Gfp::COMP).with(Gfp::RECLAIMABLE);
    let request = |gfp, order| AllocRequest { gfp, order: Order(order), node: NodeId(0) };
    assert_eq!(missing.pages, request(gfp.with(Gfp::NOWARN).with(Gfp::NORETRY), 2));
    assert_eq!(missing.fallback, Some(request(gfp, 0)));
    // Who may not sleep goes no further than the free lists.
    let atomic = mm.slab_alloc(&on(0), CacheId::XFS_INODE, Gfp::NOWAIT).expect_err("at the min watermark");
    assert_eq!((atomic.pages.order, atomic.fallback), (Order(0), None));
}

#[test]
fn from_4_2_on_the_preferred_order_is_not_reclaimed_for_but_at_first_kswapd_is_woken_for_it() {
    for (speculation, order) in [(SlabSpeculation::WakesKswapd, 2), (SlabSpeculation::FreeAboveReserves, 0)] {
        let mut mm = machine(1, 1 << 12, Rules { slab_speculation: speculation, ..rules_4_20() });
        exhaust(&mut mm, Some(Wmark::Min));
        let missing = mm.slab_alloc(&on(0), CacheId::XFS_INODE, Gfp::KERNEL).expect_err("at the min watermark");
        // What is left to the slow path is of the least order.
        assert_eq!((missing.pages.order, missing.fallback), (Order(0), None), "{speculation:?}");
        assert_eq!(mm.nodes[0].kswapd.order, Order(order));
    }
}

#[test]
fn who_may_not_sleep_wakes_kswapd_for_the_preferred_order_where_that_wakes_it() {
    for (speculation, order) in [(SlabSpeculation::Reclaims, 2), (SlabSpeculation::ReclaimsQuietly, 0)] {
        let mut mm = machine(1, 1 << 12, Rules { slab_speculation: speculation, ..rules_2_6_39() });
        exhaust(&mut mm, Some(Wmark::Min));
        assert!(!mm.slab_alloc_nowait(&on(0), CacheId::XFS_INODE, Gfp::NOFS).is_some(), "at the min watermark");
        assert_eq!(mm.nodes[0].kswapd.order, Order(order));
    }
}

#[test]
fn until_3_0_an_empty_slab_of_a_node_is_given_back_at_once() {
    let mut mm = machine(1, 1 << 14, rules_2_6_39());
    // 21 dentries a page: two slabs, and a third that the CPU allocates from.
    let objects: Vec<Obj> = (0..43).map(|_| alloc(&mut mm, 0, CacheId::DENTRY)).collect();
    assert_eq!(slab_pages(&mm), 3);
    for obj in &objects[..21] {
        mm.slab_free(&on(0), CacheId::DENTRY, *obj);
    }
    assert_eq!(slab_pages(&mm), 2);
    // The CPU's own stays.
    mm.slab_free(&on(0), CacheId::DENTRY, objects[42]);
    assert_eq!(slab_pages(&mm), 2);
    assert_valid(&mm);
}

#[test]
fn empty_slabs_are_freed_at_min_partial_and_not_before() {
    let mut mm = machine(1, 1 << 14, rules_4_20());
    // One object a slab: 4096 B of order 0 would be 8 a slab of order 3; a cache of 20000 B has one in order 3.
    let cache = mm.create_cache(CacheSpec {
        name: "large",
        size: 20_000,
        reclaimable: false,
        accounted: false,
        kind: super::ObjectKind::Plain,
    });
    let objects: Vec<Obj> = (0..20).map(|_| alloc(&mut mm, 0, cache)).collect();
    assert_eq!(slab_pages(&mm), 20 * 8);
    // cpu_partial is 2 objects; each slab comes with 1 free, so the list is unfrozen when its sum exceeds 2.
    // min_partial: log2(20000) / 2 = 7.
    for obj in &objects {
        mm.slab_free(&on(0), cache, *obj);
    }
    // On the node: 7. On the CPU: its current slab, and at most 3 partial ones.
    let kept = slab_pages(&mm) / 8;
    assert!((7..=7 + 1 + 3).contains(&kept), "{kept} slabs are kept");
    assert_valid(&mm);
}

#[test]
fn nodes_of_3_1_keep_slabs_that_become_empty() {
    let mut mm = machine(1, 1 << 14, rules_3_1());
    // Eight objects in a slab of order 3; the CPU's own slab has the last of twenty.
    let objects: Vec<Obj> = (0..20 * 8).map(|_| alloc(&mut mm, 0, CacheId::BIOVEC_MAX)).collect();
    objects.iter().for_each(|obj| mm.slab_free(&on(0), CacheId::BIOVEC_MAX, *obj));
    // log2(4096) is above 10, the most: a slab goes while more than ten are on the list, itself among them.
    assert_eq!(slab_pages(&mm) / 8, 10 + 1);
    assert_valid(&mm);
}

#[test]
fn partial_slabs_of_another_node_are_used_when_it_has_plenty() {
    let mut mm = machine(2, 1 << 14, rules_4_20());
    // 40 dentry slabs of 21 on node 0, each with one free object.
    let objects: Vec<Obj> = (0..40 * 21).map(|_| alloc(&mut mm, 0, CacheId::DENTRY)).collect();
    for obj in objects.iter().step_by(21) {
        mm.slab_free(&on(0), CacheId::DENTRY, *obj);
    }
    let obj = alloc(&mut mm, 2, CacheId::DENTRY);
    assert_eq!(mm.slabs.node_of(CacheId::DENTRY, obj), NodeId(0));
    assert_eq!(mm.stat.node(NodeId(1), NodeStat::SlabReclaimable), 0);
}

#[test]
fn kmalloc_8_has_512_objects_a_page() {
    let mut mm = machine(1, 1 << 13, Rules::newest());
    let objects: Vec<Obj> = (0..513).map(|_| alloc(&mut mm, 0, CacheId::KMALLOC_8)).collect();
    let pages: std::collections::BTreeSet<Pfn> =
        objects.iter().map(|o| mm.slabs.pfn_of(CacheId::KMALLOC_8, *o)).collect();
    assert_eq!(pages.len(), 2);
    let info = mm.slabs.slabinfo().find(|i| i.name == "kmalloc-8").unwrap();
    assert_eq!((info.num_objs, info.objperslab, info.pagesperslab, info.num_slabs), (1024, 512, 1, 2));
    // What a CPU's slab has left counts as used.
    assert_eq!(info.active_objs, 1024);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn objects_are_distinct_and_stay_where_they_are(
        era in 0usize..4,
        steps in prop::collection::vec((0u16..4, 0usize..5, any::<u16>(), 0u8..5), 1..1500),
    ) {
        let caches =
            [CacheId::DENTRY, CacheId::XFS_INODE, CacheId::KMALLOC_8, CacheId::KMALLOC_4K, CacheId::TASK_STRUCT];
        let mut mm = machine(2, 1 << 13, [rules_2_6_39(), rules_3_1(), rules_4_20(), Rules::newest()][era].clone());
        let mut live: Vec<BTreeMap<Obj, Pfn>> = vec![BTreeMap::new(); caches.len()];
        for (cpu, which, pick, kind) in steps {
            let (cache, known) = (caches[which], &mut live[which]);
            // Three of five steps allocate, so caches grow.
            if kind < 3 {
                let Ok(obj) = mm.slab_alloc(&on(cpu), cache, Gfp::KERNEL) else { continue };
                prop_assert!(known.insert(obj, mm.slabs.pfn_of(cache, obj)).is_none(), "{obj:?} twice");
            } else if let Some((&obj, &pfn)) = known.iter().nth(pick as usize % known.len().max(1)) {
                prop_assert_eq!(mm.slabs.pfn_of(cache, obj), pfn);
                known.remove(&obj);
                mm.slab_free(&on(cpu), cache, obj);
            }
        }
        let mut violations = Vec::new();
        mm.validate_slab(&mut violations);
        prop_assert!(violations.is_empty(), "{violations:?}");
        for (which, known) in live.iter().enumerate() {
            for (&obj, &pfn) in known {
                prop_assert_eq!(mm.slabs.pfn_of(caches[which], obj), pfn);
                mm.slab_free(&on(0), caches[which], obj);
            }
        }
        let mut violations = Vec::new();
        mm.validate_slab(&mut violations);
        mm.validate_zone(&mut violations);
        prop_assert!(violations.is_empty(), "{violations:?}");
    }
}

#[test]
fn a_slab_of_an_accounted_cache_has_a_vector_while_cgroups_are_in_use() {
    let in_use = |mm: &Mm, name: &str| mm.slabs.slabinfo().find(|i| i.name == name).unwrap().num_slabs;
    for (rules, vectors) in [(Rules::newest(), true), (rules_4_20(), false)] {
        let mut mm = machine(
            1,
            1 << 12,
            Rules {
                object_accounting: if vectors { ObjectAccounting::Vectors } else { ObjectAccounting::Caches },
                ..rules
            },
        );
        alloc(&mut mm, 0, CacheId::BUFFER_HEAD);
        assert_eq!(in_use(&mm, "kmalloc-512"), 0, "no cgroup is in use");
        mm.memcg_create(crate::memcg::ROOT, "group").expect("there is room");
        // 39 heads of 104 B are on a page, and the first has one already; 39 x 8 B are from kmalloc-512, of which two pages
        // hold 16.
        let heads: Vec<Obj> = (0..38 + 39 * 33).map(|_| alloc(&mut mm, 0, CacheId::BUFFER_HEAD)).collect();
        assert_eq!(in_use(&mm, "kmalloc-512"), if vectors { 33u64.div_ceil(16) } else { 0 });
        let files = alloc(&mut mm, 0, CacheId::LSM_INODE);
        assert_eq!(in_use(&mm, "kmalloc-512"), if vectors { 3 } else { 0 }, "these are not accounted");
        mm.slab_free(&on(0), CacheId::LSM_INODE, files);
        for head in heads {
            mm.slab_free(&on(0), CacheId::BUFFER_HEAD, head);
        }
        assert_valid(&mm);
    }
}
