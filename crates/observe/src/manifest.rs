//! The manifest of a run: everything that it needs to be run again, and what it left out.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Which world a run was made in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// The model.
    Twin,
    /// A real kernel in a guest.
    Qemu,
    /// The kernel of this machine.
    Host,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            World::Twin => "twin",
            World::Qemu => "qemu",
            World::Host => "host",
        })
    }
}

/// A workload and its parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Program {
    /// Its name, as `mmtwin list workloads` prints it.
    pub name: String,
    /// All parameters, defaults included.
    pub params: IndexMap<String, serde_json::Value>,
}

impl Program {
    /// Parameters with their values as they would be typed.
    pub fn typed(&self) -> impl Iterator<Item = (&str, String)> {
        let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
        self.params.iter().map(move |(name, value)| (name.as_str(), text(value)))
    }
}

/// A machine or a kernel: its name and its whole description.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Its TOML, after everything it derives from is filled in.
    pub toml: String,
}

/// All inputs of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// mmtwin's version.
    pub version: String,
    /// Where it ran.
    pub world: World,
    /// What ran.
    pub workload: Program,
    /// On what.
    pub machine: Described,
    /// Under which kernel.
    pub kernel: Described,
    /// Sysctls that differ from the kernel's defaults (`vm.swappiness` -> `60`).
    pub sysctls: IndexMap<String, String>,
    /// Seed of the experiment.
    pub seed: u64,
    /// Number of the run in the experiment, from 0.
    pub iteration: u32,
    /// What the models that the run touched leave out, and what stood in for what.
    pub omitted: Vec<String>,
    /// Length of the run in the run's own time, in seconds: the elapsed time of derived metrics.
    pub virtual_s: f64,
    /// Length of the run on the clock on the wall, in seconds. Not an input: leave it out where runs are compared byte by byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
}
