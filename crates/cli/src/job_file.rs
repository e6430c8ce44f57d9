//! `mmtwin run FILE.fio`: the text of a job file becomes a parameter of the workload `fio`, so that a run's manifest holds
//! all that the run depends on.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};

use workloads::FioFile;

use crate::args::RunArgs;
use crate::failure::Failure;

/// How the name of a job file ends.
const SUFFIX: &str = ".fio";

/// The arguments with the job file read, if the workload is one. What of it has no effect is told on standard error.
pub(crate) fn read(args: &RunArgs) -> Result<Cow<'_, RunArgs>, Failure> {
    let path = &args.workload;
    if !path.ends_with(SUFFIX) {
        return Ok(Cow::Borrowed(args));
    }
    if let Some((name, _)) = args.params.first() {
        return Err(Failure::bad_input(format!("-p {name}: {path} says everything itself: expected no parameter")));
    }
    let text = fs::read_to_string(path).map_err(|error| Failure::bad_input(format!("{path}: {error}")))?;
    let file = FioFile::parse(&text).map_err(|error| Failure::bad_input(format!("{path}:{error}")))?;
    for notice in file.notices() {
        // Without a standard error there is nobody to tell.
        let _ = writeln!(io::stderr().lock(), "mmtwin: {path}:{notice}");
    }
    let params = vec![("job".to_string(), text)];
    Ok(Cow::Owned(RunArgs { workload: "fio".to_string(), params, ..args.clone() }))
}
