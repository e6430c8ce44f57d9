//! The cases of a study's file and the runs of each: what `reproduce` and `run EXPERIMENT.toml` have in common.

use std::ops::Range;

use profile::{Case, Kernel, Machine, Study};
use twin::{Change, TraceFilter};
use workloads::{ParamError, Workload};

use crate::args::Common;
use crate::exec::{Job, Setup};
use crate::failure::Failure;

/// A column of each case's table.
pub(crate) struct Contender<'a> {
    /// What it is called.
    pub(crate) name: String,
    /// Its kernel.
    pub(crate) kernel: &'a Kernel,
    /// Tunables that go before those of the kernel and of the case.
    pub(crate) sysctls: Vec<(String, String)>,
}

/// What runs in every case of a study.
pub(crate) struct Cases<'a> {
    pub(crate) study: &'a Study,
    pub(crate) contenders: &'a [Contender<'a>],
    pub(crate) common: &'a Common,
    /// Parameters that go before those of the cases.
    pub(crate) params: &'a [(String, String)],
    /// Tunables that change while it runs.
    pub(crate) changes: &'a [Change],
    /// Tracepoints to record.
    pub(crate) trace: TraceFilter,
    /// Runs of each contender: 1 or more.
    pub(crate) iterations: u32,
}

impl Cases<'_> {
    /// The machine of each case, which `machine_of` finds, and the runs: for each case those of each contender, one after
    /// the other.
    ///
    /// # Errors
    /// Something is wrong with what the file or the command line says: exit status 2.
    pub(crate) fn plan(
        &self,
        machine_of: impl Fn(&Case) -> Result<Machine, Failure>,
    ) -> Result<(Vec<Machine>, Vec<Job>), Failure> {
        let (mut machines, mut jobs) = (Vec::new(), Vec::new());
        for case in &self.study.cases {
            let machine = machine_of(case)?;
            jobs.extend(self.jobs_of(case, &machine)?);
            machines.push(machine);
        }
        Ok((machines, jobs))
    }

    fn jobs_of(&self, case: &Case, machine: &Machine) -> Result<Vec<Job>, Failure> {
        check_workload(self.study, case)?;
        let params = [case.params.as_slice(), self.params].concat();
        let mut jobs = Vec::new();
        for Contender { name, kernel, sysctls } in self.contenders {
            let setup = Setup {
                case: &case.config,
                machine,
                workload: self.study.workload.get_ref(),
                params: &params,
                sysctls: &[case.sysctls.as_slice(), sysctls].concat(),
                changes: self.changes,
                iterations: self.iterations,
                trace: self.trace,
                seed: self.common.seed,
                out: self.common.out.as_deref(),
                verify: self.common.verify,
            };
            setup.check_machine()?;
            jobs.extend(setup.jobs(name, kernel)?);
        }
        Ok(jobs)
    }
}

/// The study of this name, or in this file.
///
/// # Errors
/// It cannot be read, or wants a metric that no run has: exit status 2.
pub(crate) fn load(name: &str) -> Result<Study, Failure> {
    let study = Study::load(name)?;
    for metric in &study.metrics {
        if observe::metric_def(metric.metric.get_ref()).is_none() {
            let message = format!("no metric is named `{}`; `mmtwin list counters` shows all", metric.metric.get_ref());
            return Err(study.error_at(metric.metric.span(), "metric", message).into());
        }
    }
    Ok(study)
}

/// Checks what the file says of the workload, so that an error in it is told with its place.
fn check_workload(study: &Study, case: &Case) -> Result<(), Failure> {
    check_params(study, &case.params, &case.params_span, "case.params")?;
    let Some(quick) = &study.quick else { return Ok(()) };
    let params = [case.params.as_slice(), &quick.params].concat();
    check_params(study, &params, &quick.params_span, "quick.params")
}

/// Checks parameters of the workload; an error is told with the place and the key given.
fn check_params(study: &Study, params: &[(String, String)], at: &Range<usize>, key: &str) -> Result<(), Failure> {
    let Err(error) = Workload::new(study.workload.get_ref(), params) else { return Ok(()) };
    let (span, key) = match error {
        ParamError::UnknownWorkload { .. } => (study.workload.span(), "workload"),
        _ => (at.clone(), key),
    };
    Err(study.error_at(span, key, error.to_string()).into())
}

#[cfg(test)]
mod tests {
    use profile::STUDIES;

    use super::*;

    #[test]
    fn the_built_in_studies_name_workloads_parameters_and_metrics_that_exist() {
        for (name, _) in STUDIES {
            let study = load(name).unwrap();
            for case in &study.cases {
                assert_eq!(check_workload(&study, case), Ok(()), "{name}: {}", case.title);
            }
        }
    }
}
