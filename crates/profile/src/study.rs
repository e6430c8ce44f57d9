//! A study: which machines, kernels and workloads, how often, and the figures that were published.

use indexmap::IndexMap;
use serde::Deserialize;
use toml::Spanned;

use crate::builtin::PUBLISHED;
use crate::text::Text;
use crate::{Kernel, Machine, ProfileError, STUDIES};

/// A study, or an experiment of a user's own.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Study {
    /// Name.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Workload.
    pub workload: Spanned<String>,
    /// Iterations, each with a seed of its own.
    pub iterations: u32,
    /// Divisor of the memory in a quick run.
    pub quick_divisor: u64,
    /// Kernels, by the names that the published figures give them.
    pub kernels: IndexMap<String, Spanned<String>>,
    /// Where it runs.
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
    /// What is compared.
    #[serde(rename = "comparison")]
    pub comparisons: Vec<Comparison>,
    /// Metrics, by the names that the published figures give them.
    #[serde(rename = "metric")]
    pub metrics: Vec<MetricMap>,
    /// Published figures: names of files in `studies/published`.
    #[serde(default)]
    pub published: Vec<Spanned<String>>,
    /// What is known of the study's machines and of what its results depend on.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One machine and one set of parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Case {
    /// Start of the configuration's name in the published figures.
    pub config: String,
    /// Heading in the table.
    pub title: String,
    /// Machine.
    pub machine: Spanned<String>,
    /// Parameters of the workload.
    #[serde(default)]
    pub params: IndexMap<String, String>,
    /// Tunables.
    #[serde(default)]
    pub sysctls: IndexMap<String, String>,
}

/// Two kernels set against each other for some metrics.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Comparison {
    /// Heading in the table.
    pub title: String,
    /// Published names of the baseline: a figure with any of them counts.
    pub baseline: Vec<String>,
    /// Kernel that stands for the baseline, as `kernels` names it.
    pub baseline_kernel: String,
    /// Published names of the variant.
    pub variant: Vec<String>,
    /// Kernel that stands for the variant, as `kernels` names it.
    pub variant_kernel: String,
    /// Names of the metrics compared.
    pub metrics: Vec<String>,
}

/// How a metric of the run is named in the publications.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MetricMap {
    /// Name in comparisons and in the table.
    pub name: String,
    /// Metric of the run.
    pub metric: String,
    /// What is taken of its samples: mean, min or total.
    pub take: String,
    /// Unit.
    pub unit: String,
    /// higher, lower or none.
    pub better: String,
    /// Starts of its published names.
    pub published: Vec<String>,
}

/// A published table.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Where it was published.
    pub source: String,
    /// Its figures.
    pub rows: Vec<PublishedRow>,
}

/// One published figure: metric, variant, configuration, value, unit, printed difference, significance.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedRow(
    pub String,
    pub String,
    pub String,
    pub Option<f64>,
    pub String,
    pub Option<f64>,
    pub Option<String>,
);

impl Study {
    /// The study with this name, or in this file.
    ///
    /// # Errors
    /// No such study; its file is malformed, or names a machine, kernel or publication that does not exist.
    pub fn load(name: &str) -> Result<Study, ProfileError> {
        let text = Text::find("study", name, STUDIES, "studies")?;
        let study: Study = text.parse()?;
        study.check(&text)?;
        Ok(study)
    }

    fn check(&self, text: &Text) -> Result<(), ProfileError> {
        for kernel in self.kernels.values() {
            Kernel::load(kernel.get_ref()).map_err(|e| text.invalid(kernel.span(), "kernels", e.to_string()))?;
        }
        for case in &self.cases {
            Machine::load(case.machine.get_ref())
                .map_err(|e| text.invalid(case.machine.span(), "case.machine", e.to_string()))?;
        }
        for file in &self.published {
            if !PUBLISHED.iter().any(|(name, _)| name == file.get_ref()) {
                let expected = PUBLISHED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                return Err(text.invalid(file.span(), "published", format!("expected one of {expected}")));
            }
        }
        for comparison in &self.comparisons {
            let known = |m: &String| self.metrics.iter().any(|d| d.name == *m);
            for kernel in [&comparison.baseline_kernel, &comparison.variant_kernel] {
                if !self.kernels.contains_key(kernel) {
                    let message = format!("comparison `{}`: no kernel is named `{kernel}`", comparison.title);
                    return Err(text.invalid(0..0, "comparison", message));
                }
            }
            if let Some(unknown) = comparison.metrics.iter().find(|m| !known(m)) {
                let message = format!("comparison `{}`: no metric is named `{unknown}`", comparison.title);
                return Err(text.invalid(0..0, "comparison.metrics", message));
            }
        }
        Ok(())
    }

    /// The published figures.
    pub fn figures(&self) -> Vec<Published> {
        let read = |name: &Spanned<String>| {
            let (_, content) = PUBLISHED.iter().find(|(n, _)| n == name.get_ref()).expect("checked when loaded");
            serde_json::from_str(content).expect("published figures are part of the program and tested")
        };
        self.published.iter().map(read).collect()
    }
}
