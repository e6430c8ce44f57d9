//! QEMU's command line and the kernel's.

use std::fs::File;
use std::path::Path;

use guest::{Disks, PROGRESS_PORT, Zram};
use units::{Bytes, Contents};

use crate::error::QemuError;
use crate::release::Release;

/// How the guest's CPUs are emulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// One CPU, an instruction each nanosecond of virtual time: a run is a function of its inputs.
    Icount,
    /// CPUs at the speed that the host has: not reproducible.
    Mttcg,
    /// The host's own CPUs, where it has KVM: not reproducible.
    Kvm,
}

/// File system of the data disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileSystem {
    /// XFS, as mkfs.xfs makes it but for what is given.
    Xfs {
        /// Size of the log.
        log: Option<Bytes>,
        /// Number of allocation groups.
        allocation_groups: Option<u32>,
    },
    /// ext4.
    Ext4,
}

impl FileSystem {
    /// As `mount` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FileSystem::Xfs { .. } => "xfs",
            FileSystem::Ext4 => "ext4",
        }
    }
}

/// The machine that the guest sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestMachine {
    /// RAM: 64 MiB to 64 GiB.
    pub memory: Bytes,
    /// How much of it at most lies below 4 GiB, in ZONE_DMA and ZONE_DMA32: 64 MiB to 3 GiB. The rest is ZONE_NORMAL.
    pub low: Bytes,
    /// CPUs: one in [`Mode::Icount`].
    pub cpus: u32,
    /// Data disk, whole MiB.
    pub data: Bytes,
    /// Swap disk, whole MiB; zero makes none.
    pub swap: Bytes,
    /// Priority of that swap; without it the kernel's own, below all that are given.
    pub swap_priority: Option<u16>,
    /// Swap in compressed memory.
    pub zrams: Vec<Zram>,
    /// What anonymous pages of the workload hold, if that matters.
    pub contents: Option<Contents>,
    /// File system of the data disk.
    pub fs: FileSystem,
    /// Limit on the workload's reads, and on its writes, of each disk, in bytes per second.
    pub io_bytes_per_s: Option<u64>,
    /// The data disk is mounted with `noatime`.
    pub noatime: bool,
}

/// Where QEMU's `pc` splits memory, unless told otherwise.
pub const LOW_MEMORY: Bytes = Bytes::gib(3);
const MEMORY_MIN: Bytes = Bytes::mib(64);
const MEMORY_MAX: Bytes = Bytes::gib(64);
/// What lies higher begins here.
const HIGH: Bytes = Bytes::gib(4);
/// The least that a file system is made on.
const DATA_MIN: Bytes = Bytes::mib(64);
const DATA_MAX: Bytes = Bytes::gib(64);

/// Since then zram has its own ways to the compressors (drivers/block/zram/backend_*.c) and needs their libraries.
const ZRAM_COMPRESSES_ITSELF: Release = (6, 12);
/// Size of a zram.
const ZRAM_MIN: Bytes = Bytes::mib(1);

/// What QEMU asks for virtual CPUs.
const KVM: &str = "/dev/kvm";
/// What QEMU's `qemu64` lacks of what distributions build for (x86-64-v2).
const CPU: &str = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt";
/// What makes a boot the same every time, ends it at a panic, and keeps the console quiet.
const KERNEL_ARGS: &str = "console=ttyS0 quiet nokaslr norandmaps panic=-1 mitigations=off nowatchdog random.trust_cpu=1 \
    audit=0 tsc=reliable";

impl Mode {
    /// Refuses what this host cannot do.
    pub(crate) fn check_host(self) -> Result<(), QemuError> {
        let usable = || File::options().read(true).write(true).open(KVM).map(drop);
        match self {
            Mode::Icount | Mode::Mttcg => Ok(()),
            Mode::Kvm => usable().map_err(|error| {
                let what = "expected KVM that this user may use; --mode mttcg needs none";
                QemuError::Input(format!("--mode kvm: {KVM}: {error}: {what}"))
            }),
        }
    }
}

impl GuestMachine {
    /// Refuses a machine that cannot be emulated.
    pub(crate) fn check(&self, mode: Mode) -> Result<(), QemuError> {
        let refuse = |what: String| Err(QemuError::Input(what));
        let sizes =
            [("memory", self.memory, MEMORY_MAX), ("memory below 4 GiB (pci-hole is the rest)", self.low, LOW_MEMORY)];
        for (what, size, max) in sizes {
            if !(MEMORY_MIN..=max).contains(&size) || !size.0.is_multiple_of(1 << 20) {
                let (min, max) = (mib(MEMORY_MIN), mib(max));
                return refuse(format!("a guest's {what}: expected {min} to {max} MiB, whole, found {} bytes", size.0));
            }
        }
        if mode == Mode::Icount && self.cpus != 1 {
            let found = self.cpus;
            return refuse(format!(
                "a guest's CPUs: expected 1 in icount mode, found {found}; --mode mttcg and kvm take more"
            ));
        }
        if !(1..=64).contains(&self.cpus) {
            return refuse(format!("a guest's CPUs: expected 1 to 64, found {}", self.cpus));
        }
        let disks = [("data", self.data, DATA_MIN), ("swap", self.swap, Bytes(0))];
        for (name, size, min) in disks {
            if size < min || size > DATA_MAX || !size.0.is_multiple_of(1 << 20) {
                let (min, max) = (mib(min), mib(DATA_MAX));
                return refuse(format!("a guest's {name} disk: expected {min} to {max} MiB, found {} bytes", size.0));
            }
        }
        if let Some(zram) = self.zrams.iter().find(|zram| !(ZRAM_MIN.0..=DATA_MAX.0).contains(&zram.bytes)) {
            let (min, max) = (mib(ZRAM_MIN), mib(DATA_MAX));
            return refuse(format!("a guest's zram: expected {min} to {max} MiB, found {} bytes", zram.bytes));
        }
        Ok(())
    }

    /// How the disks reach the guest.
    pub(crate) fn disks(mode: Mode) -> Disks {
        match mode {
            Mode::Icount => Disks::Pmem,
            Mode::Mttcg | Mode::Kvm => Disks::Virtio,
        }
    }

    /// Modules that the guest needs, in the order in which it needs them.
    pub(crate) fn modules(&self, mode: Mode) -> Vec<&'static str> {
        let mut modules = match mode {
            // The driver of the regions comes last: before it the regions are told to be used as they are.
            Mode::Icount => vec!["dm_mod", "libnvdimm", "nd_btt", "nd_e820", "nd_pmem"],
            Mode::Mttcg | Mode::Kvm => vec!["virtio_pci", "virtio_blk"],
        };
        modules.push(self.fs.name());
        if !self.zrams.is_empty() {
            modules.push("zram");
        }
        modules
    }

    /// Modules that the guest needs unless they are built in or its kernel, of which the release is given, has no such thing: before 6.12 zram
    /// compresses through the crypto interface, which asks for a module by its algorithm, and a guest has no program
    /// that would answer.
    pub(crate) fn useful_modules(&self, release: Option<Release>) -> Vec<&str> {
        if release.is_some_and(|release| release >= ZRAM_COMPRESSES_ITSELF) {
            return Vec::new();
        }
        self.zrams.iter().map(|zram| zram.compressor.as_str()).collect()
    }

    /// RAM above 4 GiB.
    fn high(&self) -> Bytes {
        Bytes(self.memory.0.saturating_sub(self.low.0))
    }

    /// Where the disks begin in the memory of QEMU's machine: behind what is below 4 GiB, of which the kernel may use a
    /// part only, and the RAM above.
    pub(crate) fn disks_at(&self) -> Bytes {
        Bytes(self.low.0 + self.high().0)
    }

    /// All memory of QEMU's machine, with the disks.
    pub(crate) fn total(&self) -> Bytes {
        Bytes(self.disks_at().0 + self.data.0 + self.swap.0)
    }

    /// Arguments of the kernel that tell RAM and disks apart.
    fn memory_map(&self) -> String {
        let ram_end = if self.high().0 > 0 { HIGH.0 + self.high().0 } else { self.memory.0 };
        let data_at = HIGH.0 + self.high().0;
        let mut text = format!(" mem={}M memmap={}M!{}M", mib(Bytes(ram_end)), mib(self.data), mib(Bytes(data_at)));
        if self.swap.0 > 0 {
            text.push_str(&format!(",{}M!{}M", mib(self.swap), mib(Bytes(data_at + self.data.0))));
        }
        text
    }

    /// QEMU's machine, which splits memory where this one does.
    fn pc(&self) -> String {
        format!("pc,hpet=off,max-ram-below-4g={}M", mib(self.low))
    }
}

fn mib(size: Bytes) -> u64 {
    size.0 >> 20
}

/// Files that QEMU works with.
pub(crate) struct Files<'a> {
    pub(crate) image: &'a Path,
    pub(crate) initramfs: &'a Path,
    /// The guest's memory with the data disk above it, in icount mode.
    pub(crate) memory: &'a Path,
    /// The data disk, and the swap disk, in the other modes.
    pub(crate) disks: [&'a Path; 2],
    pub(crate) console: &'a Path,
    pub(crate) answer: &'a Path,
    pub(crate) progress: &'a Path,
}

/// Arguments of QEMU for a machine.
pub(crate) fn arguments(machine: &GuestMachine, mode: Mode, seed: u32, files: &Files<'_>) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    let mut add = |line: &str| args.extend(line.split_ascii_whitespace().map(str::to_string));
    add("-nodefaults -no-user-config -display none -no-reboot");
    let cpu = if mode == Mode::Kvm { "host" } else { CPU };
    add(&format!("-cpu {cpu} -smp {} -seed {seed}", machine.cpus));
    let mut kernel = KERNEL_ARGS.to_string();
    match mode {
        Mode::Icount => {
            add("-rtc base=2026-01-01T00:00:00,clock=vm");
            add("-accel tcg,tb-size=512 -icount shift=0,align=off,sleep=off");
            add(&format!("-machine {},memory-backend=m", machine.pc()));
            add(&format!("-m {}M", mib(machine.total())));
            kernel.push_str(&machine.memory_map());
        }
        Mode::Mttcg | Mode::Kvm => {
            let accel = if mode == Mode::Kvm { "kvm" } else { "tcg,thread=multi,tb-size=512" };
            add(&format!("-rtc base=2026-01-01T00:00:00 -accel {accel}"));
            add(&format!("-machine {}", machine.pc()));
            add(&format!("-m {}M", mib(machine.memory)));
        }
    }
    // Paths may hold blanks, and commas, which QEMU doubles.
    let path = |path: &Path| path.to_string_lossy().replace(',', ",,");
    let mut pair = |option: &str, value: String| args.extend([option.to_string(), value]);
    if mode == Mode::Icount {
        let size = mib(machine.total());
        let backend = format!(
            "memory-backend-file,id=m,size={size}M,share=off,prealloc=off,reserve=off,mem-path={}",
            path(files.memory)
        );
        pair("-object", backend);
    } else {
        let used = 1 + usize::from(machine.swap.0 > 0);
        for (number, disk) in files.disks.iter().enumerate().take(used) {
            let rate = machine.io_bytes_per_s.map_or(String::new(), |rate| format!(",throttling.bps-total={rate}"));
            let drive = format!("if=none,id=d{number},format=raw,cache=unsafe,aio=threads{rate},file={}", path(disk));
            pair("-drive", drive);
            pair("-device", format!("virtio-blk-pci,drive=d{number}"));
        }
    }
    pair("-kernel", files.image.to_string_lossy().into_owned());
    pair("-initrd", files.initramfs.to_string_lossy().into_owned());
    pair("-append", kernel);
    pair("-chardev", format!("file,id=console,path={}", path(files.console)));
    pair("-serial", "chardev:console".to_string());
    pair("-chardev", format!("file,id=answer,path={}", path(files.answer)));
    pair("-device", "isa-debugcon,iobase=0xe9,chardev=answer".to_string());
    pair("-chardev", format!("file,id=progress,path={}", path(files.progress)));
    pair("-device", format!("isa-debugcon,iobase={PROGRESS_PORT:#x},chardev=progress"));
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> GuestMachine {
        GuestMachine {
            memory: Bytes::mib(576),
            low: LOW_MEMORY,
            cpus: 1,
            data: Bytes::mib(2048),
            swap: Bytes::mib(512),
            swap_priority: None,
            zrams: Vec::new(),
            contents: None,
            fs: FileSystem::Ext4,
            io_bytes_per_s: Some(100 << 20),
            noatime: true,
        }
    }

    fn line(machine: &GuestMachine, mode: Mode) -> String {
        let p = Path::new("/x,y");
        let files = Files { image: p, initramfs: p, memory: p, disks: [p, p], console: p, answer: p, progress: p };
        arguments(machine, mode, 7, &files).join(" ")
    }

    #[test]
    fn disks_lie_above_four_gib_one_behind_the_other() {
        let line = line(&machine(), Mode::Icount);
        assert!(line.contains("mem=576M memmap=2048M!4096M,512M!6144M"), "{line}");
        assert!(line.contains("-m 5632M") && line.contains("size=5632M"), "{line}");
        assert!(line.contains("mem-path=/x,,y") && line.contains("-seed 7"), "{line}");
    }

    #[test]
    fn memory_that_does_not_fit_below_four_gib_lies_above_and_the_disks_behind_it() {
        let machine = GuestMachine { memory: Bytes::gib(3), low: Bytes::gib(2), ..machine() };
        let line = line(&machine, Mode::Icount);
        assert!(line.contains("mem=5120M memmap=2048M!5120M,512M!7168M"), "{line}");
        assert!(line.contains("max-ram-below-4g=2048M") && line.contains("size=5632M"), "{line}");
        assert_eq!(machine.disks_at(), Bytes::gib(3));
    }

    #[test]
    fn without_swap_there_is_no_second_disk() {
        let machine = GuestMachine { swap: Bytes(0), ..machine() };
        assert!(line(&machine, Mode::Icount).contains("memmap=2048M!4096M "), "a disk too many");
        assert!(!line(&machine, Mode::Mttcg).contains("id=d1"));
        assert!(line(&machine, Mode::Mttcg).contains("throttling.bps-total=104857600"));
    }

    #[test]
    fn the_hosts_own_cpus_have_virtual_disks() {
        let line = line(&machine(), Mode::Kvm);
        assert!(line.contains("-cpu host") && line.contains("-accel kvm") && line.contains("virtio-blk-pci"), "{line}");
        assert!(!line.contains("icount") && !line.contains("tcg"), "{line}");
    }

    #[test]
    fn zram_needs_its_driver_and_before_6_12_the_crypto_interfaces_compressor() {
        assert!(!machine().modules(Mode::Icount).contains(&"zram"));
        assert!(machine().useful_modules(None).is_empty());
        let zram = |bytes| Zram { bytes, priority: 100, compressor: "lz4".to_string() };
        let with = GuestMachine { zrams: vec![zram(64 << 20)], ..machine() };
        for mode in [Mode::Icount, Mode::Mttcg] {
            assert_eq!(with.modules(mode).last(), Some(&"zram"));
        }
        assert_eq!(
            [(6, 1), (6, 11), (6, 12), (7, 0)].map(|release| with.useful_modules(Some(release)).len()),
            [1, 1, 0, 0]
        );
        assert_eq!(with.useful_modules(None), ["lz4"]);
        assert!(with.check(Mode::Icount).is_ok());
        let error = GuestMachine { zrams: vec![zram((1 << 20) - 1)], ..machine() }.check(Mode::Icount).unwrap_err();
        assert_eq!(error.to_string(), "a guest's zram: expected 1 to 65536 MiB, found 1048575 bytes");
    }

    #[test]
    fn machines_that_cannot_be_emulated_are_refused() {
        assert!(machine().check(Mode::Icount).is_ok());
        let two = GuestMachine { cpus: 2, ..machine() };
        assert!(two.check(Mode::Mttcg).is_ok());
        assert!(two.check(Mode::Icount).unwrap_err().to_string().contains("expected 1 in icount mode, found 2"));
        for memory in [Bytes::mib(63), Bytes(Bytes::mib(64).0 + 1), Bytes::gib(65)] {
            assert!(GuestMachine { memory, ..machine() }.check(Mode::Icount).is_err(), "{memory:?}");
        }
        for low in [Bytes::mib(63), Bytes::gib(4)] {
            let error = GuestMachine { low, ..machine() }.check(Mode::Icount).unwrap_err().to_string();
            assert!(error.contains("expected 64 to 3072 MiB"), "{error}");
        }
        for data in [Bytes::mib(63), Bytes::gib(65)] {
            assert!(GuestMachine { data, ..machine() }.check(Mode::Icount).is_err(), "{data:?}");
        }
    }
}
