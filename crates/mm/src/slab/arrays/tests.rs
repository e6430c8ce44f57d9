//! SLAB on small machines, held to a slow model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rules::{Rules, SlabAllocator};
use units::{Gfp, Nanos, NodeId, Order, Pfn};

use super::super::tests::{assert_valid, exhaust, machine, on, rules_4_20};
use super::super::{CacheId, Obj, REAP_INTERVAL};
use crate::stat::NodeStat;
use crate::zone::Wmark;
use crate::{Env, Mm};

fn rules(slab_allocator: SlabAllocator) -> Rules {
    Rules { slab_allocator, ..rules_4_20() }
}

fn exact_node(nodes: u32, pages: u32) -> Mm {
    machine(nodes, pages, rules(SlabAllocator::SlabExactNode))
}

fn alloc(mm: &mut Mm, cpu: u16, cache: CacheId) -> Obj {
    mm.slab_alloc(&on(cpu), cache, Gfp::KERNEL).expect("memory is plentiful")
}

fn info(mm: &Mm, name: &str) -> super::super::SlabInfo {
    mm.slabs.slabinfo().find(|info| info.name == name).expect("it is there")
}

#[test]
fn a_cpu_takes_a_small_batch_first_and_a_whole_one_once_it_uses_its_array() {
    let mut mm = exact_node(1, 1 << 13);
    // 960 bytes: 54 at most, 27 at a time; an array that was not touched gets 16. Slabs of 4 objects: a new one gives all it has.
    alloc(&mut mm, 0, CacheId::XFS_INODE);
    assert_eq!(mm.stat.node_sum(NodeStat::SlabReclaimable), 1);
    // 200 of them, and all given back: the CPU keeps its 54, the CPUs of the node share 8 x 27, so that no slab is free.
    let inodes: Vec<Obj> = (0..200).map(|_| alloc(&mut mm, 0, CacheId::XFS_INODE)).collect();
    inodes.iter().for_each(|inode| mm.slab_free(&on(0), CacheId::XFS_INODE, *inode));
    let xfs_inode = info(&mm, "xfs_inode");
    assert_eq!((xfs_inode.num_slabs, xfs_inode.active_slabs, xfs_inode.tunables), (51, 51, [54, 27, 8]));
    // One is in use, 3 of its slab and 200 others are in arrays: 6 batches of 27 went over as the 54 were full, 41 stay.
    assert_eq!(xfs_inode.shared_avail, 6 * 27);
    // The other CPU gets 16 of them, and uses the array then.
    alloc(&mut mm, 1, CacheId::XFS_INODE);
    assert_eq!(info(&mm, "xfs_inode").shared_avail, 6 * 27 - 16);
    for _ in 0..16 {
        alloc(&mut mm, 1, CacheId::XFS_INODE);
    }
    assert_eq!(info(&mm, "xfs_inode").shared_avail, 6 * 27 - 16 - 27);
    assert_valid(&mm);
}

#[test]
fn slabs_without_objects_in_use_are_kept_up_to_the_limit() {
    let mut mm = exact_node(1, 1 << 14);
    let inodes: Vec<Obj> = (0..4000).map(|_| alloc(&mut mm, 0, CacheId::XFS_INODE)).collect();
    assert_eq!(mm.stat.node_sum(NodeStat::SlabReclaimable), 1000);
    inodes.iter().for_each(|inode| mm.slab_free(&on(0), CacheId::XFS_INODE, *inode));
    // Two CPUs: (1 + 2) x 27 + 4 free objects stay in slabs at most, with what the CPU (28 to 54) and all of them (216) have.
    let kept = info(&mm, "xfs_inode").num_objs;
    assert!((28 + 216..=54 + 216 + 85 + 3 * 4).contains(&kept), "{kept}");
    assert_valid(&mm);
}

#[test]
fn a_partial_slab_goes_to_the_end_when_an_object_comes_back() {
    let mut mm = exact_node(1, 1 << 13);
    // 4 KiB: one object a slab would never be partial; dentries, 21 a slab.
    let dentries: Vec<Obj> = (0..21 * 40).map(|_| alloc(&mut mm, 0, CacheId::DENTRY)).collect();
    let page = |mm: &Mm, obj: Obj| mm.slabs.pfn_of(CacheId::DENTRY, obj);
    // 120 + 8 x 60 go to arrays; from then on they go to slabs in the order in which they were freed.
    dentries.iter().skip(1).step_by(3).chain(dentries.iter().skip(2).step_by(3)).for_each(|obj| {
        mm.slab_free(&on(0), CacheId::DENTRY, *obj);
    });
    assert_valid(&mm);
    let slabs: BTreeSet<Pfn> = dentries.iter().step_by(3).map(|obj| page(&mm, *obj)).collect();
    assert_eq!(slabs.len(), 40, "a third of each slab is in use, and no page is free");
    assert_eq!(mm.stat.node_sum(NodeStat::SlabReclaimable), 40);
}

#[test]
fn objects_of_another_node_go_home_by_the_dozen() {
    let mut mm = exact_node(2, 1 << 13);
    let inodes: Vec<Obj> = (0..13).map(|_| alloc(&mut mm, 0, CacheId::XFS_INODE)).collect();
    // CPU 2 is on node 1: twelve wait there, the next sends them to what node 0's CPUs share.
    inodes[..12].iter().for_each(|inode| mm.slab_free(&on(2), CacheId::XFS_INODE, *inode));
    assert_eq!(info(&mm, "xfs_inode").shared_avail, 0);
    mm.slab_free(&on(2), CacheId::XFS_INODE, inodes[12]);
    assert_eq!(info(&mm, "xfs_inode").shared_avail, 12);
    let own = alloc(&mut mm, 2, CacheId::XFS_INODE);
    assert_eq!(mm.slabs.node_of(CacheId::XFS_INODE, own), NodeId(1));
    assert_valid(&mm);
}

#[test]
fn what_is_not_used_goes_back_in_time() {
    let mut mm = exact_node(1, 1 << 14);
    let inodes: Vec<Obj> = (0..4000).map(|_| alloc(&mut mm, 0, CacheId::XFS_INODE)).collect();
    inodes.iter().for_each(|inode| mm.slab_free(&on(0), CacheId::XFS_INODE, *inode));
    let mut held = info(&mm, "xfs_inode").num_slabs;
    let kept = held;
    for round in 0..60 {
        mm.slab_reap(&Env { now: Nanos(round * REAP_INTERVAL.0), ..on(0) });
        let now = info(&mm, "xfs_inode").num_slabs;
        assert!(now <= held);
        held = now;
    }
    assert!(kept > 60 && held == 0, "{kept} slabs, then {held}");
    assert_valid(&mm);
}

#[test]
fn the_own_node_is_asked_quietly_and_from_4_4_on_below_the_low_watermark_too() {
    for (rule, served) in [(SlabAllocator::SlabIndex, false), (SlabAllocator::SlabExactNode, true)] {
        let mut mm = machine(1, 1 << 12, rules(rule));
        exhaust(&mut mm, Some(Wmark::Low));
        mm.effects.take_into(&mut Vec::new());
        let got = mm.slab_alloc(&on(0), CacheId::XFS_INODE, Gfp::KERNEL);
        assert_eq!(got.is_ok(), served, "{rule:?}");
        if let Err(missing) = got {
            let gfp = Gfp::KERNEL.with(Gfp::RECLAIMABLE);
            assert_eq!((missing.pages.gfp, missing.pages.order, missing.fallback), (gfp, Order(0), None));
        }
        let mut effects = Vec::new();
        mm.effects.take_into(&mut effects);
        assert!(!effects.iter().any(|effect| matches!(effect, crate::Effect::WakeKswapd(_))), "{effects:?}");
    }
}

#[test]
fn when_the_own_node_is_full_another_one_serves() {
    let mut mm = exact_node(2, 1 << 12);
    let held = exhaust(&mut mm, None);
    // One page of node 1 comes back: node 0's CPU gets an object of it, which its array does not keep.
    let page = *held.iter().rfind(|pfn| mm.node_of(**pfn) == NodeId(1)).expect("there are two nodes");
    mm.free_pages(&on(2), page, Order(0));
    mm.drain_pcp_all();
    let missing = mm.slab_alloc(&on(0), CacheId::XFS_INODE, Gfp::KERNEL).expect_err("below min").pages;
    let flags = crate::zone::AllocFlags { wmark: None, ..crate::zone::AllocFlags::only(Wmark::Min) };
    let pfn = mm.get_page_from_freelist(&on(0), missing, flags).expect("one is free");
    mm.slab_add_page(&on(0), CacheId::XFS_INODE, pfn);
    let inode = mm.slab_alloc(&on(0), CacheId::XFS_INODE, Gfp::KERNEL).expect("a slab was added");
    assert_eq!(mm.slabs.node_of(CacheId::XFS_INODE, inode), NodeId(1));
    mm.slab_free(&on(0), CacheId::XFS_INODE, inode);
    assert_valid(&mm);
}

/// A slow model: which objects are in use, and how many free ones each place has.
#[derive(Default)]
struct Model {
    live: BTreeMap<Obj, Pfn>,
    cpus: [u32; 4],
    shared: [u32; 2],
}

impl Model {
    /// What a CPU's array and its node's shared one hold after an object was taken, given what was free in slabs.
    fn taken(&mut self, cpu: usize, touched: bool, new_slab: u32, in_slabs: u32) {
        if self.cpus[cpu] == 0 {
            let batch = if touched { 27 } else { 16 };
            let shared = &mut self.shared[cpu / 2];
            let from_shared = batch.min(*shared);
            *shared -= from_shared;
            self.cpus[cpu] = match (from_shared, in_slabs) {
                (0, 0) => new_slab.min(batch),
                (0, _) => in_slabs.min(batch),
                _ => from_shared,
            };
        }
        self.cpus[cpu] -= 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn arrays_hold_what_the_model_holds(steps in prop::collection::vec((0u16..4, any::<bool>(), any::<u16>()), 1..1200)) {
        let cache = CacheId::XFS_INODE;
        let mut mm = exact_node(2, 1 << 13);
        let mut model = Model::default();
        let mut touched = [false; 4];
        for (cpu, frees, pick) in steps {
            let (at, node) = (cpu as usize, cpu as usize / 2);
            let super::super::Keeper::Slab(arrays) = &mm.slabs.cache(cache).keeper else { unreachable!() };
            let in_slabs = arrays.nodes[node].free_objects;
            if !frees || model.live.is_empty() {
                let obj = alloc(&mut mm, cpu, cache);
                model.taken(at, touched[at], 4, in_slabs);
                touched[at] = true;
                prop_assert!(model.live.insert(obj, mm.slabs.pfn_of(cache, obj)).is_none(), "{obj:?} twice");
            } else {
                let (&obj, &pfn) = model.live.iter().nth(pick as usize % model.live.len()).expect("it is not empty");
                prop_assert_eq!(mm.slabs.pfn_of(cache, obj), pfn);
                model.live.remove(&obj);
                let home = mm.slabs.node_of(cache, obj);
                mm.slab_free(&on(cpu), cache, obj);
                if home.index() == node {
                    if model.cpus[at] == 54 {
                        let room = 27.min(216 - model.shared[node]);
                        model.shared[node] += room;
                        model.cpus[at] -= if room == 0 { 27 } else { room };
                    }
                    model.cpus[at] += 1;
                }
            }
            let super::super::Keeper::Slab(arrays) = &mm.slabs.cache(cache).keeper else { unreachable!() };
            prop_assert_eq!(arrays.cpus[at].objects.len() as u32, model.cpus[at]);
            // Dozens from the other node come to what CPUs share, too.
            model.shared = [0, 1].map(|node: usize| arrays.nodes[node].shared.objects.len() as u32);
            prop_assert!(model.shared.iter().all(|shared| *shared <= 216));
        }
        assert_valid(&mm);
        for obj in model.live.into_keys() {
            mm.slab_free(&on(3), cache, obj);
        }
        assert_valid(&mm);
    }
}
