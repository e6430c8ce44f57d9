//! `--on qemu`: a guest made from a machine's description.

use std::path::PathBuf;
use std::time::Duration;

use blockdev::{DeviceSpec, RamSpec, ThrottleKind};
use guest::Job;
use observe::{Described, World};
use profile::{Machine, ZramDef};
use qemu::{FileSystem, GuestMachine, GuestRun, KernelImage, LOW_MEMORY, Mode, Outcome, QemuError};
use twin::Progress;
use units::Bytes;

use super::args::ModeArg;
use super::keep::{Evidence, keep};
use super::plan::Planned;
use super::{Kernel, Watch, settings};
use crate::args::RunArgs;
use crate::exec::{Answer, Stopwatch};
use crate::failure::Failure;
use crate::variants::{Variant, variants};

/// Interval of the series, in milliseconds of the guest.
const SERIES_MS: u64 = 1000;
/// By how many turns of a loop iterations start apart: 37 us of a guest that counts instructions, so that they do not all
/// meet the kernel's timers alike.
const SETTLE_TURNS: u64 = 37_000;

impl From<QemuError> for Failure {
    fn from(error: QemuError) -> Failure {
        if error.is_bad_input() { Failure::bad_input(error) } else { Failure::failed(error) }
    }
}

/// A kernel in a guest.
struct Guest<'a> {
    args: &'a RunArgs,
    image: KernelImage,
    variant: Variant,
    agent: PathBuf,
    machine: GuestMachine,
    mode: Mode,
    settings: Vec<(String, String)>,
    notes: Vec<String>,
}

/// The guests that were asked for.
pub(super) fn kernels<'a>(args: &'a RunArgs, machine: &Machine) -> Result<Vec<Box<dyn Kernel + 'a>>, Failure> {
    let real = &args.real;
    if real.kernel_images.is_empty() {
        let expected = "expected --kernel-image debian:6.12, debian:6.1 or the path of a vmlinuz";
        return Err(Failure::bad_input(format!("--on {}: {expected}", args.on.name())));
    }
    let mode = match real.mode() {
        ModeArg::Icount => Mode::Icount,
        ModeArg::Mttcg => Mode::Mttcg,
        ModeArg::Kvm => Mode::Kvm,
    };
    let own = machine.sysctls();
    let variants: Vec<Variant> = variants(&args.common.sysctls).into_iter().map(|variant| variant.over(&own)).collect();
    let (machine, notes) = guest_machine(machine)?;
    let agent = qemu::find_agent()?;
    let (mut guests, mut images) = (Vec::<Box<dyn Kernel>>::new(), Vec::new());
    for spec in &real.kernel_images {
        let image = KernelImage::find(spec, real.modules.as_deref())?;
        if images.contains(&image.name) {
            return Err(Failure::bad_input(format!("--kernel-image {spec}: it is there twice")));
        }
        images.push(image.name.clone());
        for variant in &variants {
            let (agent, machine, notes) = (agent.clone(), machine.clone(), notes.clone());
            let (image, variant, settings) = (image.clone(), variant.clone(), settings::files(&variant.sysctls)?);
            guests.push(Box::new(Guest { args, image, variant, agent, machine, mode, settings, notes }));
        }
    }
    Ok(guests)
}

/// A kernel's name without what all packages of kernels have in common.
fn short(name: &str) -> String {
    name.replace("debian:linux-image-", "debian-").trim_end_matches("-cloud-amd64").to_string()
}

impl Kernel for Guest<'_> {
    fn kernel(&self) -> String {
        short(&self.image.name)
    }

    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn run(&self, planned: &Planned, go_on: Watch<'_>) -> Answer {
        let watch = Stopwatch::start();
        let args = self.args;
        let run = GuestRun {
            kernel: &self.image,
            agent: &self.agent,
            machine: &self.machine,
            mode: self.mode,
            wall_limit: Duration::from_secs(args.real.wall_limit_s().into()),
            job: Job {
                workload: args.workload.clone(),
                params: args.params.clone(),
                seed: args.common.seed,
                iteration: planned.iteration,
                modules: Vec::new(),
                disks: guest::Disks::Pmem,
                fs: String::new(),
                noatime: false,
                swap: false,
                swap_priority: None,
                zrams: Vec::new(),
                contents: None,
                io_bytes_per_s: None,
                settings: self.settings.clone(),
                events: args.tracepoints(),
                limit_s: args.real.time_limit_s(),
                series_ms: SERIES_MS,
                settle_turns: SETTLE_TURNS * (u64::from(planned.iteration) + 1),
            },
        };
        let mut go_on =
            |told: &guest::Progress| go_on(&Progress { now: told.now, phase: &told.phase, done: told.done });
        match qemu::run(&run, &mut go_on) {
            Ok(outcome) => Some(keep(args, planned, self.evidence(outcome, watch.seconds()))),
            Err(QemuError::Interrupted) => None,
            Err(error) => Some(Err(error.into())),
        }
    }
}

impl Guest<'_> {
    fn evidence(&self, outcome: Outcome, wall_s: f64) -> Evidence {
        let mode = match self.mode {
            Mode::Icount => "icount shift=0: an instruction a nanosecond",
            Mode::Mttcg => "mttcg: as fast as the host is, not reproducible",
            Mode::Kvm => "kvm: the host's own CPUs, not reproducible",
        };
        let image = profile::quoted(&self.image.name);
        let text = format!("image = {image}\nmode = {mode:?}\nagent_sha256 = {:?}\n", outcome.agent_hash);
        Evidence {
            world: World::Qemu,
            kernel: Described { name: self.kernel(), toml: text },
            sysctls: self.variant.sysctls.clone(),
            results: outcome.results,
            files: outcome.files,
            omitted: self.notes.clone(),
            wall_s,
        }
    }
}

/// The guest that stands for a machine, and what of the machine it does not have.
fn guest_machine(machine: &Machine) -> Result<(GuestMachine, Vec<String>), Failure> {
    let bad = |message: &str| Failure::bad_input(format!("machine {}: --on qemu: {message}", machine.name.get_ref()));
    if machine.nodes.len() != 1 {
        return Err(bad("expected one node"));
    }
    let mount = machine.mount.as_ref().ok_or_else(|| bad("expected a [mount]"))?.get_ref();
    let disk = &machine.disks[machine.disk(&mount.disk).expect("checked when loaded")];
    let swaps = || machine.swaps.iter().map(|swap| swap.get_ref());
    let shared: u64 = swaps().filter(|swap| swap.disk == mount.disk).map(|swap| swap.size.0.0).sum();
    let swap: u64 = swaps().map(|swap| swap.size.0.0).sum();
    let device = disk.device.get_ref();
    let mut notes = vec!["the CPU is QEMU's: its speed is not the machine's".to_string()];
    let io_bytes_per_s = match device {
        DeviceSpec::Ram(RamSpec { throttle: Some(throttle), .. }) => {
            if throttle.by == ThrottleKind::Qemu {
                notes.push("disks: reads and writes are limited apart, each to the disk's rate".to_string());
            }
            throttle.bytes_per_s
        }
        _ => {
            notes.push(format!("the disk `{}` is memory without a limit", disk.name.get_ref()));
            None
        }
    };
    if mount.block_mapped {
        notes.push("the file system is ext4 with extents".to_string());
    }
    let whole = |bytes: u64| Bytes(bytes >> 20 << 20);
    let low = machine.pci_hole.as_ref().map_or(LOW_MEMORY, |hole| whole(Bytes::gib(4).0 - hole.get_ref().0.0));
    let guest = GuestMachine {
        memory: whole(machine.memory().0),
        low,
        cpus: *machine.cpus.count.get_ref(),
        data: whole(mount.partition(Bytes(device.capacity().0.saturating_sub(shared))).0),
        swap: whole(swap),
        swap_priority: swap_priority(machine),
        zrams: zrams(machine).map_err(|message| bad(&message))?,
        contents: (!machine.zrams.is_empty() || machine.contents.is_some()).then(|| machine.contents()),
        fs: match *mount.fs.get_ref() {
            profile::FileSystem::Xfs => {
                FileSystem::Xfs { log: mount.log.map(|log| log.0), allocation_groups: mount.allocation_groups }
            }
            profile::FileSystem::Ext4 => FileSystem::Ext4,
        },
        io_bytes_per_s,
        noatime: mount.noatime,
    };
    Ok((guest, notes))
}

/// Priority of the disk's swap: the machine's where it says one, or where zram beside it has one. A guest has one area for all of a machine's,
/// with the highest of their priorities; the kernel gives none below 0.
fn swap_priority(machine: &Machine) -> Option<u16> {
    let priority = machine.swaps.iter().map(|swap| swap.get_ref().priority).max()?;
    u16::try_from(priority).ok().filter(|priority| *priority > 0 || !machine.zrams.is_empty())
}

fn zrams(machine: &Machine) -> Result<Vec<guest::Zram>, String> {
    let zram = |zram: &ZramDef| {
        let ZramDef { size, priority, compressor } = zram;
        let lowest = || format!("zram.priority: {priority}: expected 0 or more: a kernel takes no other");
        let priority = u16::try_from(*priority).map_err(|_| lowest())?;
        Ok(guest::Zram { bytes: size.0.0, priority, compressor: compressor.name().to_string() })
    };
    machine.zrams.iter().map(|def| zram(def.get_ref())).collect()
}

#[cfg(test)]
mod tests {
    use units::Contents;

    use super::*;

    /// `guest-160m` with more in its file.
    fn guest_with(text: &str) -> Result<GuestMachine, Failure> {
        let machine = Machine::load("guest-160m").unwrap().text.replace("[mount]", &format!("{text}\n[mount]"));
        guest_machine(&Machine::from_text("x.toml", &machine).unwrap()).map(|(guest, _)| guest)
    }

    #[test]
    fn a_guest_has_the_machines_zram_and_what_its_pages_hold() {
        let plain = guest_with("").unwrap();
        assert_eq!((plain.zrams, plain.contents, plain.swap_priority), (vec![], None, None));
        let zram = guest_with("[[zram]]\nsize = \"64MiB\"\ncompressor = \"lz4\"").unwrap();
        let expected = guest::Zram { bytes: 64 << 20, priority: 100, compressor: "lz4".to_string() };
        assert_eq!((zram.zrams, zram.contents), (vec![expected], Some(Contents::default())));
        assert_eq!(zram.swap_priority, Some(0), "the disk is used after it");
        let contents = guest_with("[contents]\nratio = 4\nsource = \"\"").unwrap();
        assert_eq!(contents.contents, Some(Contents { mean_bytes: 1024, same_filled_percent: 0 }));
        let Err(failure) = guest_with("[[zram]]\nsize = \"64MiB\"\npriority = -1") else {
            panic!("no kernel takes it")
        };
        let told = "machine guest-160m: --on qemu: zram.priority: -1: expected 0 or more";
        assert!(failure.message().starts_with(told), "{}", failure.message());
    }

    #[test]
    fn a_guest_has_the_machines_sizes() {
        let (guest, notes) = guest_machine(&Machine::load("guest-576m").unwrap()).unwrap();
        assert_eq!((guest.memory, guest.data, guest.swap), (Bytes::mib(576), Bytes::mib(2048), Bytes::mib(512)));
        assert_eq!((guest.io_bytes_per_s, guest.fs), (Some(100 << 20), FileSystem::Ext4));
        assert!(guest.noatime);
        assert!(!notes.iter().any(|note| note.starts_with("disks: ")), "its limit is io.max's own: {notes:?}");
    }

    #[test]
    fn a_disk_that_swap_lies_on_too_is_smaller_and_one_that_is_no_memory_is_told() {
        let (guest, notes) = guest_machine(&Machine::load("small").unwrap()).unwrap();
        // 64 GB less 2 GiB, in whole MiB.
        assert_eq!(guest.data, Bytes((64_000_000_000 - (2 << 30)) >> 20 << 20));
        assert!(notes.iter().any(|note| note.contains("memory without a limit")));
        assert!(guest_machine(&Machine::load("haswell-2s").unwrap()).is_err());
    }

    #[test]
    fn packages_have_short_names() {
        assert_eq!(short("debian:linux-image-6.12.117+deb12-cloud-amd64"), "debian-6.12.117+deb12");
        assert_eq!(short("/boot/vmlinuz"), "/boot/vmlinuz");
    }
}
