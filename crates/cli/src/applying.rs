//! Options that say something to some worlds only. With another they would change nothing, and whoever gave them would not know.

use crate::args::{On, RunArgs};
use crate::failure::Failure;

const TWIN: &[On] = &[On::Twin];
const HOST: &[On] = &[On::Host];
/// The twin runs, alone or beside a guest.
const MODEL: &[On] = &[On::Twin, On::Both];
/// A guest runs.
const GUEST: &[On] = &[On::Qemu, On::Both];
/// A real kernel runs.
const REAL: &[On] = &[On::Qemu, On::Both, On::Host];
/// The machine is one that is described.
const DESCRIBED: &[On] = &[On::Twin, On::Qemu, On::Both];

/// Refuses an option that says nothing to the world that the workload is to run in.
///
/// # Errors
/// There is one: exit status 2.
pub(crate) fn check_options(args: &RunArgs) -> Result<(), Failure> {
    let idle = |(_, given, worlds): &(&str, bool, &[On])| *given && !worlds.contains(&args.on);
    let Some((option, _, worlds)) = options(args).into_iter().find(idle) else { return Ok(()) };
    let worlds: Vec<&str> = worlds.iter().map(|world| world.name()).collect();
    let message = format!("{option}: --on {} has no use for it: expected --on {}", args.on.name(), worlds.join(" or "));
    Err(Failure::bad_input(message))
}

/// Each option that not all worlds have a use for, whether it was given, and those that have.
fn options(args: &RunArgs) -> [(&'static str, bool, &'static [On]); 17] {
    let (real, common) = (&args.real, &args.common);
    [
        ("--kernel", !args.kernels.is_empty(), TWIN),
        ("--change", !args.changes.is_empty(), TWIN),
        ("--verify", common.verify, MODEL),
        // Real kernels run one after another.
        ("--jobs", common.jobs.is_some(), MODEL),
        ("--machine", args.machine.is_some(), DESCRIBED),
        ("--memory", common.memory.is_some(), DESCRIBED),
        ("--cpus", common.cpus.is_some(), DESCRIBED),
        ("--zram", common.zram.is_some(), DESCRIBED),
        ("--fs", common.fs.is_some(), DESCRIBED),
        ("--kernel-image", !real.kernel_images.is_empty(), GUEST),
        ("--modules", real.modules.is_some(), GUEST),
        ("--mode", real.mode.is_some(), GUEST),
        ("--wall-limit", real.wall_limit.is_some(), GUEST),
        ("--time-limit", real.time_limit.is_some(), REAL),
        ("--dir", real.dir.is_some(), HOST),
        ("--memory-limit", real.memory_limit.is_some(), HOST),
        ("--i-know", real.i_know, HOST),
    ]
}

#[cfg(test)]
mod tests {
    use clap::{Parser, ValueEnum};

    use super::*;
    use crate::args::{Cli, Command};

    /// An option that some worlds have no use for, as it is typed, and those that have one.
    const OPTIONS: [(&str, &str); 17] = [
        ("-k 6.12", "twin"),
        ("--change vm.swappiness=1@5", "twin"),
        ("--verify", "twin both"),
        ("--jobs 1", "twin both"),
        ("-m small", "twin qemu both"),
        ("--memory 1GiB", "twin qemu both"),
        ("--cpus 1", "twin qemu both"),
        ("--zram 1GiB", "twin qemu both"),
        ("--fs xfs", "twin qemu both"),
        ("--kernel-image debian:6.12", "qemu both"),
        ("--modules d", "qemu both"),
        // What is the default is refused, too: it was given.
        ("--mode icount", "qemu both"),
        ("--wall-limit 3600", "qemu both"),
        ("--time-limit 3600", "qemu host both"),
        ("--dir d", "host"),
        ("--memory-limit 64MiB", "host"),
        ("--i-know", "host"),
    ];

    fn check(line: &str) -> Result<(), Failure> {
        let line = format!("mmtwin run untar2 {line}");
        let Command::Run(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else { panic!("it is `run`") };
        check_options(&args)
    }

    #[test]
    fn every_option_goes_with_the_worlds_that_have_a_use_for_it() {
        for (option, worlds) in OPTIONS {
            for world in On::value_variants().iter().map(|world| world.name()) {
                let goes = worlds.split(' ').any(|known| known == world);
                assert_eq!(check(&format!("{option} --on {world}")).is_ok(), goes, "{option} --on {world}");
            }
        }
    }

    #[test]
    fn what_all_worlds_have_a_use_for_is_allowed_everywhere() {
        for world in On::value_variants().iter().map(|world| world.name()) {
            let options =
                "-p dirs=3 --set vm.swappiness=1 --seed 2 --iterations 2 --out d --events kmem --json --timings";
            assert!(check(&format!("{options} --on {world}")).is_ok());
        }
    }

    #[test]
    fn option_and_worlds_are_named() {
        let told = check("--kernel-image debian:6.12").unwrap_err();
        assert_eq!(told.message(), "--kernel-image: --on twin has no use for it: expected --on qemu or both");
    }
}
