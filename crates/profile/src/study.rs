//! A study: which machines, kernels and workloads, how often, and the figures that were published.

use std::ops::Range;

use compare::Better;
use indexmap::IndexMap;
use serde::Deserialize;
use toml::Spanned;

use crate::builtin::{KERNEL, MACHINE, PUBLISHED, STUDY};
use crate::text::{Text, typed};
use crate::{Kernel, Machine, ProfileError, Published};

/// A study, or an experiment of a user's own, with everything that it names.
#[derive(Clone, Debug)]
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
    /// Kernels, by the names that the comparisons give them.
    pub kernels: IndexMap<String, Kernel>,
    /// Where it runs.
    pub cases: Vec<Case>,
    /// What is compared.
    pub comparisons: Vec<Comparison>,
    /// Metrics, by the names that the comparisons give them.
    pub metrics: Vec<MetricMap>,
    /// Published figures.
    pub published: Vec<Published>,
    /// What is known of the study's machines and of what its results depend on.
    pub notes: Vec<String>,
    text: Text,
}

/// One machine and one set of parameters.
#[derive(Clone, Debug)]
pub struct Case {
    /// Start of the configuration's name in the published figures.
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
    pub baseline: Vec<String>,
    /// Kernel that stands for the baseline, as `kernels` names it.
    pub baseline_kernel: Spanned<String>,
    /// Published names of the variant.
    pub variant: Vec<String>,
    /// Kernel that stands for the variant, as `kernels` names it.
    pub variant_kernel: Spanned<String>,
    /// Names of the metrics compared.
    pub metrics: Vec<Spanned<String>>,
}

/// How a metric of the run is named in the publications.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MetricMap {
    /// Name in comparisons and in the table.
    pub name: String,
    /// Metric of the run.
    pub metric: Spanned<String>,
    /// What is taken of the samples of one run.
    pub take: Take,
    /// Unit.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// Its published names, without the number of threads (`-5`) that may follow.
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
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct StudyFile {
    name: String,
    title: String,
    workload: Spanned<String>,
    iterations: Spanned<u32>,
    quick_divisor: Spanned<u64>,
    kernels: IndexMap<String, Spanned<String>>,
    #[serde(rename = "case")]
    cases: Vec<CaseFile>,
    #[serde(rename = "comparison")]
    comparisons: Vec<Comparison>,
    #[serde(rename = "metric")]
    metrics: Vec<MetricMap>,
    /// Names of files in `studies/published`.
    #[serde(default)]
    published: Vec<Spanned<String>>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct CaseFile {
    config: String,
    title: String,
    machine: Spanned<String>,
    #[serde(default)]
    params: Option<Spanned<IndexMap<String, toml::Value>>>,
    #[serde(default)]
    sysctls: Option<Spanned<IndexMap<String, toml::Value>>>,
}

impl Study {
    /// The study with this name, or in this file.
    ///
    /// # Errors
    /// No such study; its file is malformed, or names a machine, kernel, tunable, metric or publication that does not
    /// exist.
    pub fn load(name: &str) -> Result<Study, ProfileError> {
        Study::read(Text::find(&STUDY, name)?)
    }

    pub(crate) fn read(text: Text) -> Result<Study, ProfileError> {
        let file: StudyFile = text.parse()?;
        for (value, key) in [
            (u64::from(*file.iterations.get_ref()), ("iterations", file.iterations.span())),
            (*file.quick_divisor.get_ref(), ("quick-divisor", file.quick_divisor.span())),
        ] {
            if value == 0 {
                return Err(text.invalid(key.1, key.0, "expected 1 or more".to_string()));
            }
        }
        let load = |name: &Spanned<String>| text.refer(&KERNEL, "kernels", name, Kernel::load);
        let kernels: Result<_, _> = file.kernels.iter().map(|(key, name)| Ok((key.clone(), load(name)?))).collect();
        let cases: Result<_, _> = file.cases.iter().map(|case| read_case(&text, case, &file.quick_divisor)).collect();
        let published: Result<_, _> = file.published.iter().map(|name| read_published(&text, name)).collect();
        let study = Study {
            name: file.name,
            title: file.title,
            workload: file.workload,
            iterations: file.iterations.into_inner(),
            quick_divisor: file.quick_divisor.into_inner(),
            kernels: kernels?,
            cases: cases?,
            comparisons: file.comparisons,
            metrics: file.metrics,
            published: published?,
            notes: file.notes,
            text,
        };
        study.check_comparisons()?;
        Ok(study)
    }

    fn check_comparisons(&self) -> Result<(), ProfileError> {
        for comparison in &self.comparisons {
            let kernels = [&comparison.baseline_kernel, &comparison.variant_kernel];
            if let Some(unknown) = kernels.into_iter().find(|kernel| !self.kernels.contains_key(kernel.get_ref())) {
                let known = self.kernels.keys().cloned().collect::<Vec<_>>().join(", ");
                let message = format!("no kernel is named `{}`: expected one of {known}", unknown.get_ref());
                return Err(self.error_at(unknown.span(), "comparison", message));
            }
            if let Some(unknown) = comparison.metrics.iter().find(|name| self.metric(name.get_ref()).is_none()) {
                let known = self.metrics.iter().map(|m| m.name.as_str()).collect::<Vec<_>>().join("; ");
                let message = format!("no metric is named `{}`: expected one of {known}", unknown.get_ref());
                return Err(self.error_at(unknown.span(), "comparison.metrics", message));
            }
        }
        Ok(())
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

fn read_case(text: &Text, case: &CaseFile, divisor: &Spanned<u64>) -> Result<Case, ProfileError> {
    let machine = text.refer(&MACHINE, "case.machine", &case.machine, Machine::load)?;
    machine
        .scaled_down(*divisor.get_ref())
        .map_err(|error| text.invalid(divisor.span(), "quick-divisor", error.to_string()))?;
    let sysctls = pairs(case.sysctls.as_ref());
    for (name, value) in &sysctls {
        let span = case.sysctls.as_ref().map_or(0..0, Spanned::span);
        rules::Tunables::default().set(name, value).map_err(|e| text.invalid(span, "case.sysctls", e.to_string()))?;
    }
    Ok(Case {
        config: case.config.clone(),
        title: case.title.clone(),
        machine,
        params: pairs(case.params.as_ref()),
        params_span: case.params.as_ref().map_or_else(|| case.machine.span(), Spanned::span),
        sysctls,
    })
}

fn pairs(table: Option<&Spanned<IndexMap<String, toml::Value>>>) -> Vec<(String, String)> {
    table.map_or_else(Vec::new, |t| t.get_ref().iter().map(|(name, value)| (name.clone(), typed(value))).collect())
}

fn read_published(text: &Text, name: &Spanned<String>) -> Result<Published, ProfileError> {
    let Some((_, content)) = PUBLISHED.iter().find(|(known, _)| known == name.get_ref()) else {
        let expected = PUBLISHED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(text.invalid(name.span(), "published", format!("expected one of {expected}")));
    };
    Ok(serde_json::from_str(content).expect("published figures are part of the program and tested"))
}
