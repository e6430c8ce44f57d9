//! A study: which machines, kernels and workloads, how often, and the figures that were published.

mod read;

use std::ops::Range;

use compare::Better;
use indexmap::IndexMap;
use serde::Deserialize;
use toml::Spanned;

use crate::builtin::STUDY;
use crate::text::Text;
use crate::{Kernel, Machine, MachineChange, ProfileError, Published, Size};

/// Most runs of a configuration.
pub const ITERATIONS_MAX: u32 = 10_000;

/// A study, or an experiment of a user's own, with everything that it names.
#[derive(Clone, Debug)]
pub struct Study {
    /// Name.
    pub name: String,
    /// What it shows; empty if the file does not say.
    pub title: String,
    /// Workload.
    pub workload: Spanned<String>,
    /// Iterations, each with a seed of its own: 1 to [`ITERATIONS_MAX`]; 1 if the file does not say.
    pub iterations: u32,
    /// How it runs in a fraction of the time.
    pub quick: Option<Quick>,
    /// Kernels, one or more, by the names that the comparisons give them.
    pub kernels: IndexMap<String, Kernel>,
    /// Where it runs: one or more.
    pub cases: Vec<Case>,
    /// What is compared with published figures; an experiment that is only run has none.
    pub comparisons: Vec<Comparison>,
    /// Metrics, by the names that the comparisons give them.
    pub metrics: Vec<MetricMap>,
    /// Published figures.
    pub published: Vec<Published>,
    /// What is known of the study's machines and of what its results depend on.
    pub notes: Vec<String>,
    /// How much its results depend on what is not published, a measured line each.
    pub sensitivity: Vec<String>,
    text: Text,
}

/// A study with less memory and less work: the effects are there, their sizes are others.
#[derive(Clone, Debug)]
pub struct Quick {
    /// Memory of machines, by their names; those that are not named keep what they have.
    pub memory: IndexMap<String, Size>,
    /// Parameters of the workload that go before those of the cases.
    pub params: Vec<(String, String)>,
    /// Where the parameters stand.
    pub params_span: Range<usize>,
    /// Iterations of each configuration.
    pub iterations: u32,
    /// What the reader must know of it.
    pub note: String,
}

impl Quick {
    /// The machine with the memory of a quick run.
    ///
    /// # Errors
    /// It cannot have so much.
    pub fn machine(&self, machine: &Machine) -> Result<Machine, ProfileError> {
        match self.memory.get(machine.name.get_ref()) {
            Some(memory) => machine.changed(&MachineChange { memory: Some(*memory), ..MachineChange::default() }),
            None => Ok(machine.clone()),
        }
    }
}

/// One machine and one set of parameters.
#[derive(Clone, Debug)]
pub struct Case {
    /// The case in one name, which no other case has: the start of the configuration's name in the published figures, or
    /// the title of a case that gives none.
    pub config: String,
    /// The case in words.
    pub title: String,
    /// Machine.
    pub machine: Machine,
    /// Parameters of the workload.
    pub params: Vec<(String, String)>,
    /// Where the parameters stand.
    pub params_span: Range<usize>,
    /// Tunables that differ from those of the kernels.
    pub sysctls: Vec<(String, String)>,
}

/// Two kernels set against each other for some metrics.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Comparison {
    /// Heading in the table.
    pub title: String,
    /// Published names of the baseline: a figure with any of them counts.
    #[serde(default)]
    pub baseline: Vec<String>,
    /// Kernel that stands for the baseline, as `kernels` names it.
    pub baseline_kernel: Spanned<String>,
    /// Part of the baseline's run that is compared; the whole run without one.
    #[serde(default)]
    pub baseline_part: Option<String>,
    /// Published names of the variant.
    #[serde(default)]
    pub variant: Vec<String>,
    /// Kernel that stands for the variant, as `kernels` names it.
    pub variant_kernel: Spanned<String>,
    /// Part of the variant's run that is compared; the whole run without one.
    #[serde(default)]
    pub variant_part: Option<String>,
    /// Names of the metrics compared; all of the study's without any.
    #[serde(default)]
    pub metrics: Vec<Spanned<String>>,
}

/// How a metric of the run is named in the publications.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MetricMap {
    /// Name in comparisons and in the table.
    pub name: String,
    /// Metric of the run; [`PART`] in it stands for the part that is compared.
    pub metric: Spanned<String>,
    /// What is taken of the samples of one run.
    pub take: Take,
    /// What is taken of several runs.
    #[serde(default)]
    pub across: Across,
    /// Unit.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// Its published names, without the number of threads (`-5`) that may follow.
    #[serde(default)]
    pub published: Vec<String>,
    /// Whether a published 0 says that nothing was measured.
    #[serde(default)]
    pub zero_is_nothing: bool,
}

/// What stands for the samples of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// Their mean.
    Mean,
    /// The smallest.
    Min,
    /// Their sum.
    Total,
    /// Their standard deviation.
    Stddev,
}

/// What stands in a metric's name for the part of the run.
pub const PART: &str = "{part}";

impl MetricMap {
    /// The metric of the run for a part of it.
    pub fn of_part(&self, part: Option<&str>) -> String {
        self.metric.get_ref().replace(PART, part.unwrap_or_default())
    }
}

/// What stands for the values of several runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Across {
    /// Their mean.
    #[default]
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Across {
    /// The values that are compared: all of them for a mean, otherwise the one that was asked for.
    pub fn of(self, values: Vec<f64>) -> Vec<f64> {
        match self {
            Across::Mean => values,
            Across::Min => values.into_iter().reduce(f64::min).into_iter().collect(),
            Across::Max => values.into_iter().reduce(f64::max).into_iter().collect(),
        }
    }
}

impl Comparison {
    /// The metrics that it compares.
    pub fn metrics<'a>(&'a self, study: &'a Study) -> Vec<&'a MetricMap> {
        if self.metrics.is_empty() {
            return study.metrics.iter().collect();
        }
        self.metrics.iter().filter_map(|name| study.metric(name.get_ref())).collect()
    }
}

impl Study {
    /// The study with this name, or in this file.
    ///
    /// # Errors
    /// No such study; its file is malformed, or names a machine, kernel, tunable, metric or publication that does not
    /// exist; it has no kernel or no case, two cases of one name, or published figures and a case without `config`.
    pub fn load(name: &str) -> Result<Study, ProfileError> {
        Study::read(Text::find(&STUDY, name)?)
    }

    /// The metric that comparisons call so.
    pub fn metric(&self, name: &str) -> Option<&MetricMap> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// The error that what stands at `span` of the study's file is not what it should be.
    pub fn error_at(&self, span: Range<usize>, key: &str, message: String) -> ProfileError {
        self.text.invalid(span, key, message)
    }
}
