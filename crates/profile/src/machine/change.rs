//! The same machine with other sizes, in its text too, so that a kept run tells the machine that ran.

use std::ops::Range;

use units::Bytes;

use super::Machine;
use super::check::{LOW_MEMORY_END, LOW_MEMORY_MIN};
use crate::text::Text;
use crate::{ProfileError, Size};

/// Node sizes are whole multiples of this: a pageblock of x86-64.
const GRAIN: Bytes = Bytes::mib(2);
/// What a machine file that states no hole has.
const DEFAULT_PCI_HOLE: Bytes = Bytes::gib(2);

/// What of a machine is to be otherwise; the rest stays as it is: disks, swap, speed, where zones begin and end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MachineChange {
    /// RAM of all nodes together; each node keeps its share, rounded to 2 MiB.
    pub memory: Option<Size>,
    /// CPUs, spread evenly over the nodes.
    pub cpus: Option<u32>,
}

impl MachineChange {
    /// Whether nothing is to change.
    pub fn is_empty(&self) -> bool {
        *self == MachineChange::default()
    }
}

/// New text for places of the old one.
type Edits = Vec<(Range<usize>, String)>;

impl Machine {
    /// The machine with `change`; its name tells what changed (`skylake-1s-16GiB`).
    ///
    /// # Errors
    /// Such a machine cannot be.
    pub fn changed(&self, change: &MachineChange) -> Result<Machine, ProfileError> {
        let mut name = self.name.get_ref().clone();
        let mut told = Vec::new();
        let mut edits = Edits::new();
        if let Some(memory) = change.memory {
            name.push_str(&format!("-{memory}"));
            told.push(format!("{memory} of memory"));
            let all = u128::from(self.memory().0);
            edits.extend(self.resized(|node| (u128::from(node.0) * u128::from(memory.0.0) / all) as u64));
        }
        if let Some(cpus) = change.cpus {
            name.push_str(&format!("-{cpus}cpus"));
            told.push(format!("{cpus} CPUs"));
            edits.push((self.cpus.count.span(), cpus.to_string()));
        }
        self.edited(&name, &told.join(" and "), edits)
    }

    /// The machine with everything that is a size of memory divided: RAM of each node, and RAM below 4 GiB, so that
    /// its zones keep their proportions. CPUs, disks and swap stay.
    ///
    /// # Errors
    /// A node is left with less memory than a machine can have.
    pub fn scaled_down(&self, divisor: u64) -> Result<Machine, ProfileError> {
        let mut edits: Edits = self.resized(|node| node.0 / divisor).collect();
        let hole = self.pci_hole.as_ref().map_or(DEFAULT_PCI_HOLE, |hole| hole.get_ref().0);
        let low = ((LOW_MEMORY_END.0 - hole.0) / divisor).max(LOW_MEMORY_MIN.0);
        let hole_text = (LOW_MEMORY_END.0 - low).to_string();
        match &self.pci_hole {
            Some(stated) => edits.push((stated.span(), hole_text)),
            // Keys of the root table stand before all other tables.
            None => edits.push((0..0, format!("pci-hole = {hole_text}\n"))),
        }
        let name = format!("{}-div{divisor}", self.name.get_ref());
        self.edited(&name, &format!("its memory divided by {divisor}"), edits)
    }

    /// The edits that give each node as many bytes as `size` makes of what it has.
    fn resized(&self, size: impl Fn(Bytes) -> u64) -> impl Iterator<Item = (Range<usize>, String)> {
        self.nodes.iter().map(move |node| {
            let bytes = size(node.memory.get_ref().0) / GRAIN.0 * GRAIN.0;
            (node.memory.span(), format!("\"{}\"", Size(Bytes(bytes))))
        })
    }

    fn edited(&self, name: &str, what: &str, mut edits: Edits) -> Result<Machine, ProfileError> {
        edits.push((self.name.span(), format!("{name:?}")));
        // From the last to the first, so that the places of those before stay what they are.
        edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        let mut content = self.text.clone();
        for (span, text) in edits {
            content.replace_range(span, &text);
        }
        let changed = Machine::read(&Text { file: name.to_string(), content });
        changed.map_err(|error| match error {
            ProfileError::Invalid { key, message, .. } => {
                ProfileError::Changed { machine: self.name.get_ref().clone(), what: what.to_string(), key, message }
            }
            _ => error,
        })
    }
}
