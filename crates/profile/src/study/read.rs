//! From a study's file to a study whose every name exists.

use indexmap::IndexMap;
use rules::Tunables;
use serde::Deserialize;
use toml::Spanned;

use super::{Case, Comparison, ITERATIONS_MAX, MetricMap, PART, Quick, Study};
use crate::builtin::{KERNEL, MACHINE, PUBLICATION};
use crate::text::{Text, typed};
use crate::{Kernel, Machine, MachineChange, ProfileError, Published, Size};

/// Names with values of any scalar type.
type Values = Option<Spanned<IndexMap<String, toml::Value>>>;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct StudyFile {
    name: Spanned<String>,
    #[serde(default)]
    title: String,
    workload: Spanned<String>,
    #[serde(default)]
    iterations: Option<Spanned<u32>>,
    #[serde(default)]
    quick: Option<QuickFile>,
    kernels: Spanned<IndexMap<String, Spanned<String>>>,
    #[serde(rename = "case")]
    cases: Vec<CaseFile>,
    #[serde(default, rename = "comparison")]
    comparisons: Vec<Comparison>,
    #[serde(default, rename = "metric")]
    metrics: Vec<MetricMap>,
    /// Names of files in `studies/published`, or files beside the study's.
    #[serde(default)]
    published: Vec<Spanned<String>>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    sensitivity: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct QuickFile {
    memory: Spanned<IndexMap<String, Size>>,
    #[serde(default)]
    params: Values,
    iterations: Spanned<u32>,
    note: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct CaseFile {
    #[serde(default)]
    config: Option<Spanned<String>>,
    title: Spanned<String>,
    machine: Spanned<String>,
    #[serde(default)]
    memory: Option<Spanned<Size>>,
    #[serde(default)]
    params: Values,
    #[serde(default)]
    sysctls: Values,
}

impl Study {
    pub(super) fn read(text: Text) -> Result<Study, ProfileError> {
        let file: StudyFile = text.parse()?;
        check_names(&text, &file)?;
        let load = |name: &Spanned<String>| text.refer(&KERNEL, "kernels", name, Kernel::load);
        let kernels = file.kernels.get_ref().iter();
        let kernels: Result<_, _> = kernels.map(|(key, name)| Ok((key.clone(), load(name)?))).collect();
        let cases: Result<Vec<_>, _> = file.cases.iter().map(|case| read_case(&text, case)).collect();
        let cases = cases?;
        let quick = file.quick.as_ref().map(|quick| read_quick(&text, quick, &cases)).transpose()?;
        let published: Result<_, _> = file.published.iter().map(|name| read_published(&text, name)).collect();
        let study = Study {
            iterations: file.iterations.as_ref().map_or(Ok(1), |given| times(&text, "iterations", given))?,
            quick,
            kernels: kernels?,
            cases,
            published: published?,
            name: file.name.into_inner(),
            title: file.title,
            workload: file.workload,
            comparisons: file.comparisons,
            metrics: file.metrics,
            notes: file.notes,
            sensitivity: file.sensitivity,
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
            self.check_parts(comparison)?;
        }
        Ok(())
    }
}

impl Study {
    /// A comparison of parts is one of metrics that parts have, and the other way round.
    fn check_parts(&self, comparison: &Comparison) -> Result<(), ProfileError> {
        let parts = [&comparison.baseline_part, &comparison.variant_part];
        for metric in comparison.metrics(self) {
            let of_part = metric.metric.get_ref().contains(PART);
            if parts.iter().any(|part| part.is_some() != of_part) {
                let message = format!(
                    "`{}` is a metric of {}, and `{}` compares {}",
                    metric.name,
                    if of_part { "parts" } else { "whole runs" },
                    comparison.title,
                    if of_part { "a whole run: expected baseline-part and variant-part" } else { "parts" },
                );
                return Err(self.error_at(metric.metric.span(), "metric", message));
            }
        }
        Ok(())
    }
}

impl CaseFile {
    /// What the case is called, and where that stands.
    fn name(&self) -> &Spanned<String> {
        self.config.as_ref().unwrap_or(&self.title)
    }

    /// The key that says so.
    fn name_key(&self) -> &'static str {
        if self.config.is_some() { "case.config" } else { "case.title" }
    }
}

/// Something runs; cases can be told apart; those of published figures say how they are called there.
fn check_names(text: &Text, file: &StudyFile) -> Result<(), ProfileError> {
    text.check_name("name", &file.name)?;
    if file.kernels.get_ref().is_empty() {
        return Err(text.invalid(file.kernels.span(), "kernels", "expected one or more".to_string()));
    }
    if file.cases.is_empty() {
        return Err(text.invalid(0..0, "case", "expected one or more".to_string()));
    }
    for (column, kernel) in file.kernels.get_ref() {
        text.check_name("kernels", &Spanned::new(kernel.span(), column.clone()))?;
    }
    for (number, case) in file.cases.iter().enumerate() {
        let name = case.name();
        text.check_case_name(case.name_key(), name)?;
        if file.cases[..number].iter().any(|other| other.name().get_ref() == name.get_ref()) {
            let message = format!("two cases are called `{}`: expected a name of its own for each", name.get_ref());
            return Err(text.invalid(name.span(), case.name_key(), message));
        }
        if case.config.is_none() && !file.published.is_empty() {
            let message = "missing: expected the start of what the published figures call the case".to_string();
            return Err(text.invalid(name.span(), "case.config", message));
        }
    }
    Ok(())
}

fn read_quick(text: &Text, quick: &QuickFile, cases: &[Case]) -> Result<Quick, ProfileError> {
    let read = Quick {
        memory: quick.memory.get_ref().clone(),
        params: pairs(&quick.params),
        params_span: quick.params.as_ref().map_or_else(|| quick.memory.span(), Spanned::span),
        iterations: times(text, "quick.iterations", &quick.iterations)?,
        note: quick.note.clone(),
    };
    let refused = |message: String| text.invalid(quick.memory.span(), "quick.memory", message);
    if let Some(unknown) = read.memory.keys().find(|name| cases.iter().all(|c| c.machine.name.get_ref() != *name)) {
        return Err(refused(format!("expected names of the study's machines, found `{unknown}`")));
    }
    for case in cases {
        read.machine(&case.machine).map_err(|error| refused(error.to_string()))?;
    }
    Ok(read)
}

fn read_case(text: &Text, case: &CaseFile) -> Result<Case, ProfileError> {
    let machine = text.refer(&MACHINE, "case.machine", &case.machine, Machine::load)?;
    Ok(Case {
        config: case.name().get_ref().clone(),
        title: case.title.get_ref().clone(),
        machine: with_memory(text, machine, case.memory.as_ref())?,
        params: pairs(&case.params),
        params_span: case.params.as_ref().map_or_else(|| case.machine.span(), Spanned::span),
        sysctls: read_sysctls(text, "case.sysctls", &case.sysctls)?,
    })
}

/// The machine of a case that was booted with other memory (`mem=`).
fn with_memory(text: &Text, machine: Machine, memory: Option<&Spanned<Size>>) -> Result<Machine, ProfileError> {
    let Some(memory) = memory else { return Ok(machine) };
    let change = MachineChange { memory: Some(*memory.get_ref()), ..MachineChange::default() };
    machine.changed(&change).map_err(|error| text.invalid(memory.span(), "case.memory", error.to_string()))
}

/// Tunables that exist, with values that they take.
fn read_sysctls(text: &Text, key: &str, values: &Values) -> Result<Vec<(String, String)>, ProfileError> {
    let sysctls = pairs(values);
    for (name, value) in &sysctls {
        let span = values.as_ref().map_or(0..0, Spanned::span);
        Tunables::default().set(name, value).map_err(|e| text.invalid(span, key, e.to_string()))?;
    }
    Ok(sysctls)
}

fn pairs(values: &Values) -> Vec<(String, String)> {
    let pairs = values.iter().flat_map(|values| values.get_ref());
    pairs.map(|(name, value)| (name.clone(), typed(value))).collect()
}

/// A number of iterations.
fn times(text: &Text, key: &str, value: &Spanned<u32>) -> Result<u32, ProfileError> {
    match *value.get_ref() {
        times @ 1..=ITERATIONS_MAX => Ok(times),
        _ => Err(text.invalid(value.span(), key, format!("expected 1 to {ITERATIONS_MAX}"))),
    }
}

fn read_published(text: &Text, name: &Spanned<String>) -> Result<Published, ProfileError> {
    text.refer(&PUBLICATION, "published", name, |path| {
        let found = Text::find(&PUBLICATION, path)?;
        serde_json::from_str(&found.content).map_err(|error| ProfileError::Invalid {
            line: error.line(),
            key: "published figures".to_string(),
            message: error.to_string(),
            file: found.file,
        })
    })
}
