//! Runs of real kernels that `mmtwin run --on qemu` made.

use std::path::Path;

use indexmap::IndexMap;
use observe::{MANIFEST, Program, RunDir, World};
use profile::{KERNELS, Kernel, Machine};
use rules::{LruGenCaps, LruPolicy};
use workloads::WORKLOADS;

use super::{Counted, LRU_GEN, RealRun, is_off};
use crate::capturing::{Captured, settings};
use crate::failure::Failure;
use crate::kept::in_a_name;

pub(super) fn read(path: &Path) -> Result<RealRun, Failure> {
    let run = RunDir::read(path).map_err(Failure::bad_input)?;
    let manifest = &run.manifest;
    let refused = |what: &str| Failure::bad_input(format!("{}: {what}", path.display()));
    if manifest.world != World::Qemu {
        return Err(refused("expected the run of a guest (--on qemu)"));
    }
    let kernel = version_of(&manifest.kernel.name).ok_or_else(|| refused("kernel: expected a version such as 6.12"))?;
    let captured = Captured {
        name: format!("{}-started", manifest.machine.name),
        description: format!("The guest of {} as the workload started.", path.display()),
        snapshot: &run.before,
        uptime_s: run.before.uptime.map(|uptime| uptime.up_s),
        // The agent starts the workload in one, unless there are none of version 2: then it limits the disks for all.
        workload_group: !path.join("guest/blkio.throttle.write_bps_device").exists(),
        // It has no udev. Under KVM the CPU may have RDRAND, which is left out here.
        bare_boot: true,
        sysctls: settings(path, manifest),
    };
    let machine = Machine::from_text(&path.join(MANIFEST).to_string_lossy(), &manifest.machine.toml)?;
    let machine = machine.started_from(&captured.machine()?)?;
    let written: Vec<_> = written(&manifest.sysctls).map(|(name, value)| (name.clone(), value.clone())).collect();
    let given: Vec<_> = params(&manifest.workload).map(|(name, value)| (name.to_string(), value)).collect();
    Ok(RealRun {
        group: group_of(&kernel, &manifest.workload, &manifest.machine.name, &manifest.sysctls),
        workload: manifest.workload.name.clone(),
        params: manifest.workload.typed().map(|(name, value)| (name.to_string(), value)).collect(),
        traits: super::traits(
            "mmtwin",
            &kernel,
            &manifest.workload.name,
            has_generations(&kernel, &manifest.sysctls),
            [("machine".to_string(), manifest.machine.name.clone())].into_iter().chain(given).chain(written),
        ),
        kernel,
        seed: manifest.seed,
        iteration: manifest.iteration,
        elapsed_s: Some(manifest.virtual_s),
        counted: Counted { extfrag: super::extfrag_of(&run), before: run.before, after: run.after },
        machine,
    })
}

/// The profile that a kernel's name, or the path of its image, names from its first figure on; else major and minor number.
pub(super) fn version_of(name: &str) -> Option<String> {
    let name = name.rsplit('/').next()?;
    let digits = &name[name.find(|c: char| c.is_ascii_digit())?..];
    if KERNELS.iter().any(|(known, _)| *known == digits) {
        return Some(digits.to_string());
    }
    let mut numbers = digits.split(|c: char| !c.is_ascii_digit());
    Some(format!("{}.{}", numbers.next()?, numbers.next().filter(|minor| !minor.is_empty())?))
}

/// Whether the multi-gen LRU was on: as it was written, else as the kernel starts. Nothing is known of one without a profile,
/// whose runs wait for it.
fn runs_generations(kernel: &str, written: Option<&str>) -> bool {
    let profile = Kernel::load(kernel).ok();
    let has = profile.as_ref().is_none_or(|kernel| kernel.rules.lru_policy != LruPolicy::TwoLists);
    let starts_with = || profile.as_ref().is_none_or(|kernel| kernel.tunables.lru_gen_enabled != LruGenCaps::NONE);
    has && written.map_or_else(starts_with, |value| !is_off(value))
}

/// The group of runs of a workload under the kernel of this profile, with these settings written.
pub(super) fn group_of(kernel: &str, workload: &Program, machine: &str, sysctls: &IndexMap<String, String>) -> String {
    let lru = if has_generations(kernel, sysctls) { "mglru" } else { "classic" };
    let given = params(workload).map(|(name, value)| format!(" {name}={}", in_a_name(&value)));
    let written = written(sysctls).map(|(name, value)| format!(" {name}={value}"));
    format!("{kernel}-{}-{lru} on {machine}{}", workload.name, given.chain(written).collect::<String>())
}

fn has_generations(kernel: &str, sysctls: &IndexMap<String, String>) -> bool {
    runs_generations(kernel, sysctls.get(LRU_GEN).map(String::as_str))
}

/// Settings that were written beside those of the multi-gen LRU.
fn written(sysctls: &IndexMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    sysctls.iter().filter(|(name, _)| !name.starts_with("lru_gen."))
}

/// Parameters that are not the workload's defaults.
fn params(program: &Program) -> impl Iterator<Item = (&str, String)> {
    let defaults = WORKLOADS.iter().find(|known| known.name == program.name).map_or(&[][..], |known| known.params);
    let is_default =
        |(name, value): &(&str, String)| defaults.iter().any(|param| param.name == *name && param.default == value);
    program.typed().filter(move |given| !is_default(given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_known_by_its_version() {
        assert_eq!(version_of("debian-6.12.117+deb12").as_deref(), Some("6.12"));
        assert_eq!(version_of("6.1").as_deref(), Some("6.1"));
        assert_eq!(version_of("/k44/boot/vmlinuz-4.4.0-21-generic").as_deref(), Some("4.4"));
        assert_eq!(version_of("old/vmlinuz-3.19-rc4-pivot").as_deref(), Some("3.19-rc4-pivot"));
        assert_eq!(version_of("old/vmlinuz-3.19-rc4-mine").as_deref(), Some("3.19"));
        assert_eq!(version_of("boot/vmlinuz-5.0.0-65-generic").as_deref(), Some("5.0.0-65-generic"));
        assert_eq!(version_of("mine"), None);
        assert_eq!(version_of("v6"), None);
    }

    #[test]
    fn a_kernel_has_the_lru_that_it_starts_with_unless_another_was_written() {
        let on = |kernel| [None, Some("y"), Some("n"), Some("0x0000")].map(|written| runs_generations(kernel, written));
        assert_eq!(on("6.12"), [true, true, false, false]);
        // As Debian builds it.
        assert_eq!(on("6.1"), [false, true, false, false]);
        assert_eq!(on("5.10"), [false; 4], "it has none");
    }
}
