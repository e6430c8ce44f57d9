//! `mmtwin compare`: runs that were kept, side by side.

use report::{Column, comparison_table};

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::{kept, output};

pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let runs = kept::read(&args.runs)?;
    for case in kept::cases(&runs) {
        let columns: Vec<Column> = case.configurations.iter().map(kept::Configuration::column).collect();
        let table = format!("{}\n{}\n", case.title, comparison_table(&columns, output::width()));
        output::print(table.trim_start())?;
    }
    Ok(())
}
