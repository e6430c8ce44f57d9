//! The same machine with other sizes, in its text too, so that a kept run tells the machine that ran.

use std::fmt;
use std::ops::Range;

use rules::Compressor;
use units::Bytes;

use super::{FileSystem, Machine};
use crate::text::{Text, quoted};
use crate::{ProfileError, Size};

/// Node sizes are whole multiples of this: a pageblock of x86-64.
const GRAIN: Bytes = Bytes::mib(2);

/// What of a machine is to be otherwise; the rest stays as it is: disks, swap, speed, where zones begin and end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MachineChange {
    /// RAM of all nodes together; each node keeps its share, rounded to 2 MiB.
    pub memory: Option<Size>,
    /// CPUs, spread evenly over the nodes.
    pub cpus: Option<u32>,
    /// Swap in compressed memory beside what there is, used first.
    pub zram: Option<ZramChange>,
    /// The file system that is mounted.
    pub fs: Option<FileSystem>,
}

/// Swap in compressed memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZramChange {
    /// What it holds, uncompressed.
    pub size: Size,
    /// How it compresses.
    pub compressor: Compressor,
}

impl ZramChange {
    /// `256MiB`, or `256MiB:lz4` with a compressor that is not the default.
    ///
    /// # Errors
    /// It is not that; the text says what was expected.
    pub fn parse(text: &str) -> Result<ZramChange, String> {
        let (size, compressor) = match text.split_once(':') {
            None => (text, Compressor::default()),
            Some((size, word)) => (size, Compressor::named(word)?),
        };
        Ok(ZramChange { size: Size::parse(size)?, compressor })
    }
}

/// As it is part of a name: `256MiB`, `256MiB-lz4`.
impl fmt::Display for ZramChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ZramChange { size, compressor } = self;
        if *compressor == Compressor::default() {
            write!(f, "{size}")
        } else {
            write!(f, "{size}-{}", compressor.name())
        }
    }
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
        if let (Some(memory), Some(zone)) = (change.memory, self.zones.first()) {
            let what = format!("{memory} of memory");
            let message = format!("zone {} is described as it was: its size is fixed", zone.get_ref().name);
            let machine = self.name.get_ref().clone();
            return Err(ProfileError::Changed { machine, what, key: "zone".into(), message });
        }
        if let Some(memory) = change.memory {
            name.push_str(&format!("-{memory}"));
            told.push(format!("{memory} of memory"));
            edits.extend(self.resized(memory.0));
        }
        if let Some(cpus) = change.cpus {
            name.push_str(&format!("-{cpus}cpus"));
            told.push(format!("{cpus} CPUs"));
            edits.push((self.cpus.count.span(), cpus.to_string()));
        }
        if let Some(zram) = change.zram {
            name.push_str(&format!("-zram-{zram}"));
            told.push(format!("{zram} of zram"));
            let end = self.text.len();
            let ZramChange { size, compressor } = zram;
            let compressor = match compressor {
                default if default == Compressor::default() => String::new(),
                other => format!("compressor = \"{}\"\n", other.name()),
            };
            edits.push((end..end, format!("\n[[zram]]\nsize = \"{size}\"\n{compressor}")));
        }
        if let Some(fs) = change.fs {
            let Some(mount) = &self.mount else {
                let machine = self.name.get_ref().clone();
                let message = "expected a [mount]".into();
                return Err(ProfileError::Changed { machine, what: fs.name().into(), key: "mount".into(), message });
            };
            name.push_str(&format!("-{}", fs.name()));
            told.push(fs.name().to_string());
            edits.push((mount.get_ref().fs.span(), quoted(fs.name())));
        }
        self.edited(&name, &told.join(" and "), edits)
    }

    /// The edits that give the nodes so much memory together, each its share of it in whole pageblocks.
    fn resized(&self, memory: Bytes) -> impl Iterator<Item = (Range<usize>, String)> {
        let all = u128::from(self.memory().0);
        self.nodes.iter().map(move |node| {
            let share = u128::from(node.memory.get_ref().0.0) * u128::from(memory.0) / all;
            let size = Size(Bytes(share as u64 / GRAIN.0 * GRAIN.0));
            (node.memory.span(), format!("\"{size}\""))
        })
    }

    fn edited(&self, name: &str, what: &str, mut edits: Edits) -> Result<Machine, ProfileError> {
        edits.push((self.name.span(), quoted(name)));
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
