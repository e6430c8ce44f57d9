//! The CPUs of the machine, the nodes they belong to, and sets of them.

use units::{CpuId, NodeId};

/// Most CPUs of a machine; a set of them is a bitmap of this size.
pub const CPUS_MAX: usize = 1024;
const WORDS: usize = CPUS_MAX / 64;

/// Which node each CPU belongs to.
#[derive(Clone, Debug)]
pub struct CpuTopology {
    node_of: Vec<NodeId>,
}

impl CpuTopology {
    /// One entry per CPU: its node.
    ///
    /// # Panics
    /// With no CPU or more than [`CPUS_MAX`].
    pub fn new(node_of: Vec<NodeId>) -> CpuTopology {
        assert!(!node_of.is_empty(), "a machine has at least one CPU");
        assert!(node_of.len() <= CPUS_MAX, "at most {CPUS_MAX} CPUs");
        CpuTopology { node_of }
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.node_of.len()
    }

    /// The node of a CPU.
    #[inline]
    pub fn node_of(&self, cpu: CpuId) -> NodeId {
        self.node_of[cpu.index()]
    }

    /// Every CPU, in order.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.node_of.len() as u16).map(CpuId)
    }
}

/// A set of CPUs: the kernel's `cpumask`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuSet {
    words: [u64; WORDS],
}

impl CpuSet {
    /// No CPU.
    pub const EMPTY: CpuSet = CpuSet { words: [0; WORDS] };

    /// Every CPU of the machine.
    pub fn all(topology: &CpuTopology) -> CpuSet {
        let mut set = CpuSet::EMPTY;
        topology.cpus().for_each(|cpu| set.insert(cpu));
        set
    }

    /// The CPUs of one node.
    pub fn of_node(topology: &CpuTopology, node: NodeId) -> CpuSet {
        let mut set = CpuSet::EMPTY;
        topology.cpus().filter(|&cpu| topology.node_of(cpu) == node).for_each(|cpu| set.insert(cpu));
        set
    }

    /// One CPU.
    pub fn single(cpu: CpuId) -> CpuSet {
        let mut set = CpuSet::EMPTY;
        set.insert(cpu);
        set
    }

    /// Whether the CPU is in the set.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words[cpu.index() / 64] >> (cpu.index() % 64) & 1 == 1
    }

    /// Adds a CPU.
    #[inline]
    pub fn insert(&mut self, cpu: CpuId) {
        self.words[cpu.index() / 64] |= 1 << (cpu.index() % 64);
    }

    /// Removes a CPU.
    #[inline]
    pub fn remove(&mut self, cpu: CpuId) {
        self.words[cpu.index() / 64] &= !(1 << (cpu.index() % 64));
    }

    /// Whether there is no CPU in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The CPUs of the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)))
                .take_while(|&rest| rest != 0)
                .map(move |rest| CpuId((index * 64) as u16 + rest.trailing_zeros() as u16))
        })
    }

    /// The CPUs in both sets, in order.
    pub(crate) fn common(&self, other: &CpuSet) -> CpuSet {
        let mut set = *self;
        for (word, also) in set.words.iter_mut().zip(&other.words) {
            *word &= also;
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_a_two_node_machine() {
        let nodes: Vec<NodeId> = (0..130).map(|cpu| NodeId(cpu / 65)).collect();
        let topology = CpuTopology::new(nodes);
        let second = CpuSet::of_node(&topology, NodeId(1));
        assert_eq!(CpuSet::all(&topology).iter().count(), 130);
        assert_eq!(second.iter().next(), Some(CpuId(65)));
        assert_eq!(second.iter().last(), Some(CpuId(129)));
        assert!(!second.contains(CpuId(64)));
        assert_eq!(second.common(&CpuSet::single(CpuId(70))), CpuSet::single(CpuId(70)));
        assert!(second.common(&CpuSet::single(CpuId(3))).is_empty());
    }
}
