//! Random allocations and frees of all orders, types and CPUs against a slow reference: the set of pages in use.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rules::{PcpLists, Rules, WatermarkBoost, ZoneSpreading};
use units::{CpuId, Gfp, NodeId, Order, Pfn};

use crate::zone::testing::{gfp_of, layout, machine, make_lru, rules_4_20, span, violations};
use crate::{AllocRequest, Env, Frame, Kind, MigrateType, Mm, TaskFlags, ZoneKind};

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc { order: u8, migratetype: usize, cpu: u16, atomic: bool, lru: bool, reserves: bool },
    Free { which: usize, cpu: u16 },
    Drain { cpu: u16 },
    Isolate { which: usize },
    Unreserve { force: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let order = prop_oneof![4 => 0..=1u8, 2 => 0..=4u8, 1 => 0..=10u8];
    let alloc = (order, 0..3usize, 0..4u16, prop::bool::weighted(0.1), any::<bool>(), prop::bool::weighted(0.7));
    let alloc = alloc.prop_map(|(order, migratetype, cpu, atomic, lru, reserves)| Step::Alloc {
        order,
        migratetype,
        cpu,
        atomic,
        lru,
        reserves,
    });
    prop_oneof![
        10 => alloc,
        8 => (any::<usize>(), 0..4u16).prop_map(|(which, cpu)| Step::Free { which, cpu }),
        1 => (0..4u16).prop_map(|cpu| Step::Drain { cpu }),
        1 => any::<usize>().prop_map(|which| Step::Isolate { which }),
        1 => any::<bool>().prop_map(|force| Step::Unreserve { force }),
    ]
}

fn eras() -> Vec<Rules> {
    let spread = Rules {
        zone_spreading: ZoneSpreading::FastPath,
        watermark_boost: WatermarkBoost::PageblockStep,
        ..rules_4_20()
    };
    let high_order = Rules { pcp_lists: PcpLists::HighOrder, ..Rules::newest() };
    vec![rules_4_20(), spread, high_order, Rules::newest()]
}

/// Two nodes: DMA32 and Normal of three pageblocks each, and a Normal zone of four.
fn small_machine(rules: Rules) -> Mm {
    let first = vec![span(ZoneKind::Dma32, 0, 3), span(ZoneKind::Normal, 3, 3)];
    machine(&layout(vec![first, vec![span(ZoneKind::Normal, 6, 4)]]), rules)
}

/// Blocks in use by their first frame, and what holds for them.
struct Reference {
    used: BTreeMap<Pfn, Order>,
}

impl Reference {
    fn take(&mut self, pfn: Pfn, order: Order) {
        assert!(pfn.0.is_multiple_of(order.pages()), "{pfn:?} is not aligned to order {}", order.0);
        let below = self.used.range(..=pfn).next_back();
        assert!(below.is_none_or(|(p, o)| p.0 + o.pages() <= pfn.0), "{pfn:?} lies in a block in use");
        let above = self.used.range(pfn..).next();
        assert!(above.is_none_or(|(p, _)| pfn.0 + order.pages() <= p.0), "{pfn:?} covers a block in use");
        self.used.insert(pfn, order);
    }

    fn pages(&self) -> u64 {
        self.used.values().map(|o| u64::from(o.pages())).sum()
    }
}

fn alloc(mm: &mut Mm, env: Env, req: AllocRequest, reserves: bool) -> Option<Pfn> {
    if let Some(pfn) = mm.alloc_pages(&env, req) {
        return Some(pfn);
    }
    let flags = mm.gfp_to_alloc_flags(&env, req);
    let slow = mm.get_page_from_freelist(&env, req, flags);
    if slow.is_some() || !reserves {
        return slow;
    }
    let mut env = env;
    env.task.memalloc = true;
    let flags = mm.reserve_alloc_flags(&env, req.gfp).expect("a reclaimer may use the reserves");
    mm.get_page_from_freelist(&env, req, flags)
}

fn apply(mm: &mut Mm, reference: &mut Reference, step: Step) {
    let env = |cpu: u16| Env {
        now: units::Nanos::ZERO,
        cpu: CpuId(cpu),
        node: NodeId((cpu / 2) as u8),
        task: TaskFlags::default(),
    };
    match step {
        Step::Alloc { order, migratetype, cpu, atomic, lru, reserves } => {
            let base = gfp_of(MigrateType::from_index(migratetype));
            let gfp = if atomic { Gfp::ATOMIC } else { base };
            let req = AllocRequest { gfp, order: Order(order), node: NodeId((cpu / 2) as u8) };
            if let Some(pfn) = alloc(mm, env(cpu), req, reserves) {
                assert!(mm.frames[pfn].kind() == Kind::Held && mm.frames[pfn].order() == req.order);
                reference.take(pfn, req.order);
                if lru {
                    make_lru(mm, pfn);
                }
            }
        }
        Step::Free { which, cpu } => {
            let Some((&pfn, &order)) = reference.used.iter().nth(which % reference.used.len().max(1)) else { return };
            reference.used.remove(&pfn);
            mm.frames[pfn].clear(Frame::LRU);
            mm.free_pages(&env(cpu), pfn, order);
        }
        Step::Drain { cpu } => mm.drain_pcp(CpuId(cpu)),
        Step::Isolate { which } => {
            let heads: Vec<Pfn> =
                (0..mm.frames.len() as u32).map(Pfn).filter(|&p| mm.frames[p].kind() == Kind::Buddy).collect();
            let Some(&pfn) = heads.get(which % heads.len().max(1)) else { return };
            if let Some(order) = mm.isolate_free_block(pfn) {
                mm.split_held(pfn);
                for n in 0..order.pages() {
                    reference.take(pfn.offset(n), Order(0));
                }
            }
        }
        Step::Unreserve { force } => {
            let req = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(0), node: NodeId(0) };
            mm.unreserve_highatomic(req, force);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_page_is_in_exactly_one_place(era in 0..4usize, steps in prop::collection::vec(step(), 1..400)) {
        let mut mm = small_machine(eras().swap_remove(era));
        let managed: u64 = mm.zones.iter().map(|z| z.managed).sum();
        let mut reference = Reference { used: BTreeMap::new() };
        for (n, &step) in steps.iter().enumerate() {
            apply(&mut mm, &mut reference, step);
            let free: u64 = mm.zones.iter().map(|z| z.free_pages + mm.pcp_pages(z.id)).sum();
            prop_assert_eq!(free + reference.pages(), managed);
            if n % 16 == 0 {
                prop_assert_eq!(violations(&mm), []);
            }
        }
        prop_assert_eq!(violations(&mm), []);
        let env = Env { now: units::Nanos::ZERO, cpu: CpuId(0), node: NodeId(0), task: TaskFlags::default() };
        for (&pfn, &order) in &reference.used {
            mm.frames[pfn].clear(Frame::LRU);
            mm.free_pages(&env, pfn, order);
        }
        mm.drain_pcp_all();
        while mm.unreserve_highatomic(AllocRequest { gfp: Gfp::KERNEL, order: Order(0), node: NodeId(0) }, true) {}
        prop_assert_eq!(violations(&mm), []);
        prop_assert_eq!(mm.zones.iter().map(|z| z.free_pages).sum::<u64>(), managed);
    }
}
