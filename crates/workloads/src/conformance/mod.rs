//! conformance: small programs that every world must answer alike, number for number.
//!
//! Source: own. A program records what it saw where the kernel is exact: sizes, errors, residency, charges, who is killed. What
//! the kernel itself only does about so (charges come in batches, counters of groups are added up late) is recorded as
//! whether it holds. `mmtwin run conformance --on both` runs them on the twin and in a guest.

mod cgroups;
mod files;
mod memory;
mod pipes;
mod readahead;
mod threads;

use sys::{Mapping, Result, SpawnOptions, Sys, SysError};
use units::{Bytes, PAGE_SIZE};

use crate::steps::run_process;
use crate::{Param, ParamError, Params, WorkloadSpec};

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "conformance",
    doc: "small programs that every world must answer alike: files, mappings, readahead, threads, pipes, memory cgroups",
    params: &[Param { name: "program", default: "all", doc: "the program, or all" }],
};

macro_rules! programs {
    ($($module:ident::$name:ident,)*) => {
        /// The programs. Those of cgroups need one, and those that fill a disk a small one.
        pub const PROGRAMS: &[&str] = &[$(stringify!($name)),*];

        /// Whether a program of this name makes memory cgroups.
        fn is_of_cgroups(name: &str) -> bool {
            match name {
                $(stringify!($name) => stringify!($module) == "cgroups",)*
                other => unreachable!("{other} is not in the list"),
            }
        }

        async fn run_program<S: Sys>(sys: S, name: &str) -> Result<()> {
            match name {
                $(stringify!($name) => $module::$name(sys).await,)*
                other => unreachable!("{other} is not in the list"),
            }
        }
    };
}

programs!(
    // Groups are made before anything was evicted: the twin has none later.
    cgroups::limits_are_whole_pages,
    cgroups::who_touches_a_page_first_pays_for_it,
    cgroups::a_page_is_paid_for_until_it_is_gone,
    cgroups::a_group_above_max_is_killed_and_nobody_else,
    cgroups::clean_files_give_way_below_max,
    cgroups::above_high_a_task_waits_and_goes_on,
    cgroups::swapped_pages_come_back,
    cgroups::swap_ends_where_swap_max_says,
    cgroups::groups_above_see_what_happens_below,
    cgroups::who_is_killed_closes_its_pipe,
    memory::memory_is_resident_once_touched,
    memory::bad_mappings_and_ranges_are_invalid,
    memory::a_mapped_file_is_the_file,
    memory::a_write_takes_what_is_mapped,
    readahead::a_read_brings_its_window,
    readahead::advice_is_heeded,
    files::reads_end_where_the_file_ends,
    files::truncation_cuts_and_extends,
    files::a_removed_file_lives_until_its_last_close,
    files::missing_files_have_no_entry,
    files::a_directory_goes_when_it_is_empty,
    files::a_removed_directory_has_no_entries,
    files::a_file_has_a_largest_size,
    files::a_full_disk_takes_no_more,
    threads::threads_share_files_and_processes_do_not,
    threads::threads_stop_when_asked_and_meet_at_barriers,
    threads::who_is_stopped_is_stopped_with_all_that_it_spawned,
    pipes::what_is_written_to_a_pipe_is_read,
    pipes::a_full_pipe_takes_no_more,
    pipes::a_pipe_ends_with_its_last_writer,
    pipes::a_child_holds_no_end_that_it_was_not_given,
    pipes::who_writes_without_a_reader_is_told,
    pipes::a_process_has_the_ends_that_it_was_given,
    pipes::threads_share_the_ends_of_their_process,
);

/// The workload with its parameters.
#[derive(Clone, Debug)]
pub struct Conformance {
    programs: Vec<&'static str>,
}

impl Conformance {
    pub(crate) fn from_params(params: &Params) -> std::result::Result<Conformance, ParamError> {
        let asked = params.text("program");
        let programs: Vec<&str> = PROGRAMS.iter().copied().filter(|name| asked == "all" || asked == *name).collect();
        if programs.is_empty() {
            return params.refuse("program", format!("all, {}", PROGRAMS.join(", ")));
        }
        Ok(Conformance { programs })
    }

    /// Whether it makes memory cgroups.
    pub(crate) fn has_cgroups(&self) -> bool {
        self.programs.iter().any(|name| is_of_cgroups(name))
    }

    /// Each program is a process, so that none has the files and mappings of another.
    pub(crate) async fn run<S: Sys>(self, sys: S) -> Result<()> {
        for name in self.programs {
            sys.phase(name);
            run_process(&sys, SpawnOptions::process("conformance"), move |sys: S| async move {
                run_program(sys, name).await
            })
            .await;
        }
        Ok(())
    }
}

/// A result as a number: what it is if it is good, an error below zero.
pub fn number<T>(result: Result<T>, value: impl FnOnce(T) -> f64) -> f64 {
    let error = |error| match error {
        SysError::NoMemory => -1.0,
        SysError::NoSpace => -2.0,
        SysError::NoEntry => -3.0,
        SysError::Io => -4.0,
        SysError::Invalid => -5.0,
        SysError::BadFd => -6.0,
        SysError::TooManyFiles => -7.0,
        SysError::NotSupported => -8.0,
        SysError::Killed => -9.0,
        SysError::FileTooLarge => -10.0,
        SysError::NeedsModule => -11.0,
        SysError::NoSysctl => -12.0,
        SysError::NotEmpty => -13.0,
        SysError::BrokenPipe => -14.0,
    };
    result.map_or_else(error, value)
}

/// A size as a number.
pub fn size(result: Result<Bytes>) -> f64 {
    number(result, |bytes| bytes.0 as f64)
}

/// What has no value as a number.
pub fn done(result: Result<()>) -> f64 {
    number(result, |()| 0.0)
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

const fn pages(n: u64) -> Bytes {
    Bytes(n * PAGE_SIZE)
}

fn resident<S: Sys>(sys: &S, mapping: Mapping, page: u64) {
    sys.sample("conformance/resident", truth(sys.mincore(mapping, pages(page))));
}
