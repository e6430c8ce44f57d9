//! `/sys/kernel/debug/lru_gen`.
//!
//! Abstracted: there is one cgroup, the root.

use mm::Mm;
use observe::{Generation, LruGenInfo, LruGenMemcg, LruGenNode};
use units::Nanos;

/// Number of the root cgroup.
const ROOT: u32 = 1;
/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

/// The generations of every node; none where pages are on lists.
pub(super) fn lru_gen(mm: &Mm, now: Nanos) -> Option<LruGenInfo> {
    let nodes = mm.nodes.iter().map(|node| {
        let generations = node.lruvecs[0].lru_gen.as_ref()?.generations();
        let generations =
            generations.map(|(seq, born, [anon, file])| Generation { seq, age_ms: now.since(born).0 / MS, anon, file });
        Some(LruGenNode { node: u32::from(node.id.0), generations: generations.collect() })
    });
    let root = LruGenMemcg { id: ROOT, path: "/".to_owned(), nodes: nodes.collect::<Option<_>>()? };
    Some(LruGenInfo { memcgs: vec![root] })
}
