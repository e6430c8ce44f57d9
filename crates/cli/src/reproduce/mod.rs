//! `mmtwin reproduce`: published studies, published and twin figures side by side.

mod plan;
mod rows;

use profile::STUDIES;
use report::{ReproduceReport, study_table};

use crate::args::ReproduceArgs;
use crate::exec::{self, Answer, Board, Interrupt, Stopwatch};
use crate::failure::Failure;
use crate::output;
use plan::Plan;

pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let all: Vec<String> = STUDIES.iter().map(|(name, _)| (*name).to_string()).collect();
    let names = if args.studies.is_empty() { &all } else { &args.studies };
    let plans: Result<Vec<Plan>, Failure> = names.iter().map(|name| Plan::new(args, name)).collect();
    let plans = plans?;
    exec::check_places(args.common.out.as_deref(), plans.iter().flat_map(|plan| &plan.jobs))?;
    let interrupt = Interrupt::install()?;
    let board = Board::new(plans.iter().map(|plan| plan.jobs.len()).sum());
    let mut studies = Vec::new();
    let mut answers: Vec<Answer> = Vec::new();
    for plan in &plans {
        let watch = Stopwatch::start();
        let of_study = exec::execute(&plan.jobs, args.common.jobs(), &board, &interrupt);
        let report = plan.report(&of_study, watch.seconds());
        answers.extend(of_study);
        if !args.common.json && !report.rows.is_empty() {
            board.suspend(|| output::print(&(study_table(&report, output::width()) + "\n")))?;
        }
        studies.push(report);
    }
    drop(board);
    if args.common.json {
        output::print_json(&ReproduceReport { version: env!("CARGO_PKG_VERSION").to_string(), studies })?;
    }
    exec::verdict(&answers, &interrupt)
}
