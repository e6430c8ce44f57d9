//! The tree of a file's pages against a slow model: real nodes with 64 slots each, built and freed one by one.

use std::collections::BTreeMap;

use proptest::prelude::*;
use units::{NodeId, Pfn};

use super::slots;
use super::tree::Trees;
use crate::memcg::ROOT;
use crate::slab::Obj;
use crate::vfs::Share;

/// What a slot of a node points at.
#[derive(Clone)]
enum Entry {
    Value(u32),
    Node(Box<Node>),
}

/// A node: its level (0 at the bottom) and its slots.
#[derive(Clone)]
struct Node {
    level: u32,
    slots: BTreeMap<u32, Entry>,
}

/// A tree as `xas_store` keeps it.
#[derive(Clone, Default)]
struct Model {
    head: Option<Entry>,
}

impl Model {
    fn max_index(&self) -> u64 {
        match &self.head {
            Some(Entry::Node(node)) => (1 << (6 * (node.level + 1))) - 1,
            _ => 0,
        }
    }

    fn store(&mut self, index: u32, value: u32) {
        if self.head.is_none() && index > 0 {
            let mut level = 0;
            while index >> (6 * level) >= 64 {
                level += 1;
            }
            self.head = Some(Entry::Node(Box::new(Node { level, slots: BTreeMap::new() })));
        }
        while u64::from(index) > self.max_index() {
            let old = self.head.take().expect("an empty tree was handled");
            let level = match &old {
                Entry::Node(node) => node.level + 1,
                Entry::Value(_) => 0,
            };
            self.head = Some(Entry::Node(Box::new(Node { level, slots: BTreeMap::from([(0, old)]) })));
        }
        let mut at = match &mut self.head {
            Some(Entry::Node(node)) => node,
            _ => {
                self.head = Some(Entry::Value(value));
                return;
            }
        };
        while at.level > 0 {
            let below = at.level - 1;
            let slot = index >> (6 * at.level) & 63;
            let fresh = || Entry::Node(Box::new(Node { level: below, slots: BTreeMap::new() }));
            at = match at.slots.entry(slot).or_insert_with(fresh) {
                Entry::Node(node) => node,
                Entry::Value(_) => unreachable!("values are at the bottom"),
            };
        }
        at.slots.insert(index & 63, Entry::Value(value));
    }

    fn erase(&mut self, index: u32) {
        fn erase(node: &mut Node, index: u32) {
            let slot = index >> (6 * node.level) & 63;
            let gone = match node.slots.get_mut(&slot) {
                Some(Entry::Node(below)) => {
                    erase(below, index);
                    below.slots.is_empty()
                }
                _ => true,
            };
            if gone {
                node.slots.remove(&slot);
            }
        }
        match &mut self.head {
            Some(Entry::Node(node)) => erase(node, index),
            _ => self.head = None,
        }
        loop {
            let next = match &self.head {
                Some(Entry::Node(node)) if node.slots.is_empty() => None,
                Some(Entry::Node(node)) if node.slots.len() == 1 => match node.slots.get(&0) {
                    Some(below @ Entry::Node(_)) => Some(below.clone()),
                    Some(value @ Entry::Value(_)) if node.level == 0 => Some(value.clone()),
                    _ => return,
                },
                _ => return,
            };
            self.head = next;
        }
    }

    fn nodes(&self) -> u64 {
        fn count(entry: &Entry) -> u64 {
            match entry {
                Entry::Value(_) => 0,
                Entry::Node(node) => 1 + node.slots.values().map(count).sum::<u64>(),
            }
        }
        self.head.as_ref().map_or(0, count)
    }

    /// Bottom nodes that hold shadows only.
    fn shadow_nodes(&self) -> u64 {
        fn count(entry: &Entry) -> u64 {
            let shadow = |e: &Entry| matches!(e, Entry::Value(raw) if slots::is_shadow(*raw));
            match entry {
                Entry::Node(node) if node.level == 0 => u64::from(node.slots.values().all(shadow)),
                Entry::Node(node) => node.slots.values().map(count).sum(),
                Entry::Value(_) => 0,
            }
        }
        self.head.as_ref().map_or(0, count)
    }
}

fn top_up(trees: &mut Trees, file: u32, index: u32) -> usize {
    let missing = trees.nodes_missing(file, index);
    trees.spare.clear();
    trees.spare.resize(missing, (Obj(1), Share { node: NodeId(0), memcg: ROOT }));
    missing
}

#[derive(Clone, Debug)]
enum Op {
    Page(u32),
    Evict(u32),
    Erase(u32),
    Dirty(u32),
    Clean(u32),
}

fn index() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0..20u32, 4 => 0..300u32, 2 => 4000..4200u32, 1 => 262_100..262_200u32, 1 => Just(20_000_000u32)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => index().prop_map(Op::Page),
        2 => index().prop_map(Op::Evict),
        4 => index().prop_map(Op::Erase),
        2 => index().prop_map(Op::Dirty),
        1 => index().prop_map(Op::Clean),
    ]
}

proptest! {
    #[test]
    fn tree_equals_model(ops in prop::collection::vec(op(), 1..200)) {
        let mut trees = Trees::default();
        let mut model = Model::default();
        let mut map: BTreeMap<u32, u32> = BTreeMap::new();
        let mut dirty: BTreeMap<u32, ()> = BTreeMap::new();
        for (n, op) in ops.into_iter().enumerate() {
            let n = n as u32;
            match op {
                Op::Page(at) if map.get(&at).is_none_or(|raw| slots::is_shadow(*raw)) => {
                    let before = trees.nodes();
                    let missing = top_up(&mut trees, 0, at) as u64;
                    let old = trees.insert(0, at, slots::page(Pfn(n)));
                    prop_assert_eq!(old, map.insert(at, slots::page(Pfn(n))).unwrap_or(0));
                    model.store(at, slots::page(Pfn(n)));
                    prop_assert!(trees.spare.is_empty(), "every reserved node was used");
                    prop_assert_eq!(trees.nodes(), before + missing);
                }
                Op::Evict(at) if map.get(&at).is_some_and(|raw| slots::is_page(*raw)) => {
                    trees.clear_dirty(0, at);
                    dirty.remove(&at);
                    trees.replace(0, at, slots::shadow(n));
                    map.insert(at, slots::shadow(n));
                    model.store(at, slots::shadow(n));
                }
                Op::Erase(at) if map.contains_key(&at) => {
                    prop_assert_eq!(Some(slots::unpack(trees.erase(0, at))), map.remove(&at).map(slots::unpack));
                    dirty.remove(&at);
                    model.erase(at);
                }
                Op::Dirty(at) if map.get(&at).is_some_and(|raw| slots::is_page(*raw)) => {
                    trees.set_dirty(0, at);
                    dirty.insert(at, ());
                }
                Op::Clean(at) if dirty.remove(&at).is_some() => trees.clear_dirty(0, at),
                _ => {}
            }
            prop_assert_eq!(trees.nodes(), model.nodes());
            prop_assert_eq!(trees.shadows.len_of_node(0), model.shadow_nodes());
            prop_assert_eq!(trees.nr_pages(0) as usize, map.values().filter(|r| slots::is_page(**r)).count());
            prop_assert_eq!(trees.is_empty(0), map.is_empty());
            prop_assert_eq!(trees.nr_dirty(0) as usize, dirty.len());
        }
        let mut found = Vec::new();
        let mut from = 0;
        while let Some((at, raw)) = trees.next_entry(0, from) {
            found.push((at, if slots::is_page(raw) { slots::tagged(raw, false) } else { raw }));
            from = at + 1;
        }
        prop_assert_eq!(found, map.iter().map(|(at, raw)| (*at, *raw)).collect::<Vec<_>>());
        let mut tagged = Vec::new();
        let mut from = 0;
        while let Some(at) = trees.next_dirty(0, from) {
            tagged.push(at);
            from = at + 1;
        }
        prop_assert_eq!(&tagged, &dirty.keys().copied().collect::<Vec<_>>());
        for at in tagged {
            let run = (at..).take_while(|i| dirty.contains_key(i)).count() as u32;
            prop_assert_eq!(trees.dirty_run(0, at, 1000), run);
        }
    }
}

#[test]
fn node_counts_of_drawn_files() {
    // (indices stored in this order, nodes): a lone page at 0 needs none; 64 pages one; index 64 a second leaf and a
    // root; index 4096 alone three levels.
    let cases: [(&[u32], u64); 6] =
        [(&[0], 0), (&[5], 1), (&[0, 1], 1), (&[0, 64], 3), (&[4096], 3), (&[0, 64, 4096], 3 + 1 + 2)];
    for (indices, nodes) in cases {
        let mut trees = Trees::default();
        for &at in indices {
            top_up(&mut trees, 0, at);
            trees.insert(0, at, slots::page(Pfn(at)));
        }
        assert_eq!(trees.nodes(), nodes, "{indices:?}");
        for &at in indices.iter().rev() {
            trees.erase(0, at);
        }
        assert_eq!(trees.nodes(), 0, "{indices:?}");
        assert!(trees.is_empty(0));
    }
}
