//! The one place that starts the twin.

use twin::{Progress, RunError, RunOutcome};

use super::Job;

pub(super) fn run(job: &Job, progress: &mut dyn FnMut(&Progress<'_>) -> bool) -> Result<RunOutcome, RunError> {
    let workload = job.workload.clone();
    twin::run(&job.spec, |sys| workload.run(sys), progress)
}
