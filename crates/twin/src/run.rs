//! One run: boots the machine, starts its daemons, runs the workload to its end.

use std::future::Future;
use std::time::Duration;

use blockdev::{DeviceSpec, SpecError};
use mm::compaction::PROACTIVE_INTERVAL;
use mm::compaction::ZoneMap;
use mm::slab::REAP_INTERVAL;
use mm::swap::SwapSpec;
use mm::trace::TraceFilter;
use mm::vfs::{FsId, FsKind, FsSpec};
use mm::writeback::{RequestLimits, WbId};
use mm::{BioEnd, CompressCosts, CopyCosts, Costs, KswapdDeeds, MemoryLayout, Mm};
use observe::{Series, Snapshot};
use profile::{CompressNs, Disk, FileSystem, Kernel, Machine, Mount, SwapArea, ZramDef};
use rules::{Crc32c, Ext4Format, MemoryFull, Rules, SlabAllocator, TaskPicking, Tunables, UnseededRandom, XfsFormat};
use sim::{Class, CpuGroup, CpuSet, CpuTopology, Ctl, Deadlock, RunEnd, SchedParams, Sim, SpawnOptions};
use thiserror::Error;
use units::{Bytes, Nanos, NodeId, PAGE_SIZE};

use crate::boot;
use crate::booted;
use crate::devices::{Device, Devices};
use crate::log::{CpuTime, IoTime, RunLog};
use crate::snapshot;
use crate::standstill::{STANDS_AFTER, Standstill, stands_still, standstill};
use crate::start;
use crate::sys::{Processes, SysTwin};
use crate::task;
use crate::world::{Event, MEMCG_FLUSH_INTERVAL, Queues, STAT_INTERVAL, World, first_after_boot};

/// CPU time after which a task gives way at its next preemption point. Effects of a slice are visible from its start, so
/// this bounds by how much two CPUs may disagree about the order of things; one 2 MiB fill takes about as long.
pub(crate) const QUANTUM: Nanos = mm::writeback::TASK_SLICE;
/// Virtual time between two calls of the progress callback.
const PROGRESS_STEP: Nanos = Nanos::millis(500);
/// Virtual time between two maps of the zones.
const ZONE_MAP_STEP: Nanos = Nanos::secs(10);
/// To what `/proc/uptime` tells the time.
const UPTIME_GRAIN: Nanos = Nanos::millis(10);
/// No workload takes this long.
const VIRTUAL_LIMIT: Nanos = Nanos::secs(7 * 24 * 3600);

/// Everything that a run depends on.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The machine.
    pub machine: Machine,
    /// The kernel.
    pub kernel: Kernel,
    /// Its tunables, overrides included.
    pub tunables: Tunables,
    /// Seed.
    pub seed: u64,
    /// Iteration: a seed beside the seed, so that variants share their draws.
    pub iteration: u32,
    /// Check every structure after each step of virtual time.
    pub verify: bool,
    /// Tracepoints to record.
    pub trace: TraceFilter,
    /// Virtual time between two readings of the counters (rounded up to half seconds); none are kept without it.
    pub series: Option<Nanos>,
    /// Tunables that change while the workload runs.
    pub changes: Vec<Change>,
}

/// A write to a tunable in the midst of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// When, since the start of the run.
    pub at: Nanos,
    /// Which; a name of the registry.
    pub name: String,
    /// What is written; what the tunable takes.
    pub value: String,
}

impl RunSpec {
    /// The first iteration with seed 1 and the kernel's tunables: nothing is checked, traced or sampled.
    pub fn new(machine: Machine, kernel: Kernel) -> RunSpec {
        RunSpec {
            machine,
            tunables: kernel.tunables.clone(),
            kernel,
            seed: 1,
            iteration: 0,
            verify: false,
            trace: TraceFilter::default(),
            series: None,
            changes: Vec::new(),
        }
    }
}

/// How far a run has come.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Virtual time so far.
    pub now: Nanos,
    /// Phase of the workload.
    pub phase: &'a str,
    /// How much of the workload is done, from 0 to 1; 0 while it does not say.
    pub done: f64,
}

/// What a run came to.
pub struct RunOutcome {
    /// `/proc` before the workload.
    pub before: Snapshot,
    /// `/proc` after it.
    pub after: Snapshot,
    /// Samples, phases, events.
    pub log: RunLog,
    /// Counters over time, if they were asked for.
    pub series: Option<Series>,
    /// Every zone now and then, if compaction's tracepoints were recorded.
    pub zone_maps: Vec<(Nanos, Vec<ZoneMap>)>,
    /// Virtual time from the start to the end of the workload.
    pub virtual_time: Nanos,
    /// CPU time of each task: name, time.
    pub cpu_times: Vec<(String, Nanos)>,
    /// CPU time of the whole machine.
    pub cpu: CpuTime,
    /// Requests of the mounted device.
    pub io: IoTime,
    /// What the kswapds have done, node by node.
    pub kswapd: Vec<KswapdDeeds>,
    /// Slabs that had to be of the least order.
    pub slab_order_fallbacks: u64,
    /// Most host bytes that everything took that grows with the machine, the workload's files or the length of the run.
    pub host_bytes: u64,
    /// Fragmentation events by requested type: unmovable, movable, reclaimable.
    pub extfrag: [u64; 3],
}

/// Why a run failed.
#[derive(Debug, Error)]
pub enum RunError {
    /// The machine has an impossible device.
    #[error("disk {0}: {1}")]
    Device(String, SpecError),
    /// The machine cannot have been in the state that it is described in.
    #[error("machine {0}: {1}")]
    Start(String, mm::zone::StartError),
    /// The machine's memory does not hold what it holds since it was booted.
    #[error("machine {0}: no memory for what `booted` says that it holds")]
    NoRoom(String),
    /// The workload could not go on.
    #[error("the workload failed in phase `{phase}` after {at:.3} s: {error}")]
    Workload {
        /// Why.
        error: sys::SysError,
        /// Where.
        phase: String,
        /// When, in virtual seconds.
        at: f64,
    },
    /// Nothing can happen any more.
    #[error("{0}")]
    Deadlock(Deadlock),
    /// Interrupted by the user.
    #[error("interrupted")]
    Interrupted,
    /// An invariant does not hold.
    #[error("invariant violated at {at:.6} s:\n{list}\nreplay: seed {seed}, iteration {iteration}")]
    Invariant {
        /// When, in virtual seconds.
        at: f64,
        /// The violations.
        list: String,
        /// Seed.
        seed: u64,
        /// Iteration.
        iteration: u32,
    },
    /// The run does not end.
    #[error("not finished after {limit:?} of virtual time{tasks}")]
    TooLong {
        /// The time.
        limit: Duration,
        /// Who waits for what.
        tasks: Standstill,
    },
    /// No task of the workload will ever go on, although there are events.
    #[error("no task of the workload has gone on for {:?} of virtual time, after {at:.3} s{tasks}", Duration::from_nanos(STANDS_AFTER.0))]
    Standstill {
        /// When it was noticed, in virtual seconds.
        at: f64,
        /// Who waits for what.
        tasks: Standstill,
    },
}

pub(crate) fn too_long(sim: &mut Sim<World>) -> RunError {
    RunError::TooLong { limit: Duration::from_nanos(sim.now().0), tasks: standstill(sim) }
}

/// Boots the machine and runs `workload` on it. `progress` is called now and then; once it answers false the run ends as
/// interrupted.
pub fn run<F, Fut>(
    spec: &RunSpec,
    workload: F,
    progress: &mut dyn FnMut(&Progress<'_>) -> bool,
) -> Result<RunOutcome, RunError>
where
    F: FnOnce(SysTwin) -> Fut,
    Fut: Future<Output = sys::Result<()>> + 'static,
{
    let mut sim = boot(spec)?;
    let mut before = snapshot::snapshot(&sim.world().mm, &spec.kernel, sim.now());
    sim.with_world(|world, ctl| {
        snapshot::add_pressure(&mut before, ctl, world.era);
        world.changes.clone_from(&spec.changes);
        for (number, change) in spec.changes.iter().enumerate() {
            ctl.schedule_after(change.at, Class::Timer, Event::Change(number));
        }
    });
    start_workload(&mut sim, workload);
    let (mut series, mut zone_maps) = (Series::default(), Vec::new());
    let mut deadline = Nanos::ZERO;
    let mut host_bytes = 0;
    loop {
        deadline += PROGRESS_STEP;
        let end = sim.run_until(deadline).map_err(RunError::Deadlock)?;
        if spec.series.is_some_and(|step| series.rows().last().is_none_or(|row| sim.now() >= row.at + step)) {
            snapshot::sample(&mut series, &sim.world().mm, spec.kernel.era, sim.now());
        }
        if spec.trace.compaction && zone_maps.last().is_none_or(|(at, _)| sim.now() >= *at + ZONE_MAP_STEP) {
            zone_maps.push((sim.now(), sim.world().mm.zone_maps()));
        }
        if spec.verify {
            verify(&sim, spec)?;
        }
        let world = sim.world();
        host_bytes = world.host_bytes().max(host_bytes);
        let phase = world.log.phases.last().map_or("start", |phase| &phase.name);
        if let Some(error) = world.log.failure {
            return Err(RunError::Workload { error, phase: phase.to_string(), at: sim.now().as_secs_f64() });
        }
        if end == RunEnd::AllEnded {
            break;
        }
        if !progress(&Progress { now: sim.now(), phase, done: world.log.done }) {
            return Err(RunError::Interrupted);
        }
        drop(world);
        if deadline > VIRTUAL_LIMIT {
            return Err(too_long(&mut sim));
        }
        if stands_still(&mut sim, STANDS_AFTER) {
            return Err(RunError::Standstill { at: sim.now().as_secs_f64(), tasks: standstill(&mut sim) });
        }
    }
    let mut outcome = outcome(sim, before, spec);
    outcome.host_bytes = host_bytes as u64;
    outcome.series = spec.series.map(|_| series);
    outcome.zone_maps = zone_maps;
    Ok(outcome)
}

pub(crate) fn outcome(mut sim: Sim<World>, before: Snapshot, spec: &RunSpec) -> RunOutcome {
    let virtual_time = sim.now();
    let (after, cpu_times, cpu) = sim.with_world(|world, ctl| {
        let mut after = snapshot::snapshot(&world.mm, &spec.kernel, virtual_time);
        snapshot::add_pressure(&mut after, ctl, world.era);
        snapshot::add_groups(&mut after, world, ctl);
        let times = ctl.tasks().map(|(_, name, _, time)| (name.to_string(), time)).collect();
        (after, times, world.cpu_time(ctl))
    });
    let mut world = sim.into_world();
    let io = world.devices.io_time();
    use mm::stat::ExtfragEvent::{Movable, Reclaimable, Unmovable};
    let extfrag = [Unmovable, Movable, Reclaimable].map(|event| world.mm.stat.extfrag(event));
    let host_bytes = world.host_bytes() as u64;
    world.log.sort_events();
    RunOutcome {
        before,
        after,
        log: std::mem::take(&mut world.log),
        series: None,
        zone_maps: Vec::new(),
        virtual_time,
        cpu_times,
        cpu,
        io,
        kswapd: world.mm.nodes.iter().map(|node| node.kswapd.deeds).collect(),
        slab_order_fallbacks: world.mm.slabs.order_fallbacks(),
        host_bytes,
        extfrag,
    }
}

pub(crate) fn verify(sim: &Sim<World>, spec: &RunSpec) -> Result<(), RunError> {
    let violations = sim.world().mm.validate();
    if violations.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = violations.iter().take(20).map(ToString::to_string).collect();
    Err(RunError::Invariant {
        at: sim.now().as_secs_f64(),
        list: list.join("\n"),
        seed: spec.seed,
        iteration: spec.iteration,
    })
}

/// The machine with its daemons, before the workload.
pub(crate) fn boot(spec: &RunSpec) -> Result<Sim<World>, RunError> {
    let machine = &spec.machine;
    let layout = boot::memory_layout(machine);
    let topology = CpuTopology::new(layout.cpu_nodes.clone());
    let params = sched_params(&spec.kernel.rules, &topology);
    let mut mm = memory(spec, &layout)?;
    let mounted = attach_disks(&mut mm, machine);
    let nr_nodes = layout.nodes.len();
    let seed = sys::workload_seed(spec.seed, spec.iteration);
    let streams = sim::Streams::new(spec.seed, spec.iteration);
    let root = mounted.map(|(fs, _)| mm.vfs_root(fs));
    let since_tick = drawn_below(&streams, "tick", params.tick);
    let ticks = (params.tick, since_tick);
    let mut world = World::unwired(mm, Processes::new(seed, root), spec.kernel.era, ticks);
    world.cpu_speed = *machine.cpus.speed.get_ref();
    if let Some((_, device)) = mounted {
        world.readahead_pages = machine.disks[usize::from(device)].read_ahead_kb() / 4;
    }
    world.workload_group = machine.cpus.workload_group.then_some(CpuGroup(0));
    let mut sim = Sim::new(world, topology.clone(), QUANTUM, SchedParams { since_tick, ..params });
    sim.with_world(|world, ctl| wire(world, ctl, machine, nr_nodes, &streams))?;
    start_daemons(&mut sim, &topology, nr_nodes, machine.disks.len(), mounted);
    if let Some(services) = &machine.booted {
        booted::start_daemons(&mut sim, services);
    }
    Ok(sim)
}

/// How CPUs are shared under a kernel with such rules.
fn sched_params(rules: &Rules, topology: &CpuTopology) -> SchedParams {
    let params = match rules.task_picking {
        TaskPicking::LeastRuntime => SchedParams::linux_4_20(topology.nr_cpus()),
        TaskPicking::EarliestDeadline => SchedParams::linux_6_12(topology.nr_cpus()),
    };
    let memory_full = match rules.memory_full {
        MemoryFull::AtTicks => sim::MemoryFull::AtTicks,
        MemoryFull::OnCpu => sim::MemoryFull::OnCpu,
    };
    SchedParams { memory_full, ..params }
}

/// Memory in the state that the run starts from, with what the machine holds since it was booted.
fn memory(spec: &RunSpec, layout: &MemoryLayout) -> Result<Mm, RunError> {
    let machine = &spec.machine;
    let costs = costs(machine, &spec.kernel.rules);
    let mut mm = Mm::new(layout, spec.kernel.rules.clone(), spec.tunables.clone(), costs);
    start::start(&mut mm, spec).map_err(|error| RunError::Start(machine.name.get_ref().clone(), error))?;
    if let Some(kernel) = &machine.booted
        && !booted::allocate(&mut mm, kernel)
    {
        return Err(RunError::NoRoom(machine.name.get_ref().clone()));
    }
    mm.trace.filter = spec.trace;
    Ok(mm)
}

/// Tells memory management of the machine's disks and zrams, and what is on them; gives the file system that is mounted, with its device.
fn attach_disks(mm: &mut Mm, machine: &Machine) -> Option<(FsId, u16)> {
    for (device, disk) in machine.disks.iter().enumerate() {
        mm.set_bio_end(device as u16, bio_end(disk.device.get_ref()));
        if !machine.cpus.workload_group {
            // No group but the root that a limit could be of.
            mm.limit_root(device as u16);
        }
        mm.set_request_limits(device as u16, request_limits(disk.device.get_ref()));
    }
    let mut room: Vec<Bytes> = machine.disks.iter().map(|d| d.device.get_ref().capacity()).collect();
    for swap in &machine.swaps {
        add_swap(mm, machine, swap.get_ref(), &mut room);
    }
    mm.swap.contents = machine.contents();
    for (number, zram) in machine.zrams.iter().enumerate() {
        add_zram(mm, (machine.disks.len() + number) as u16, zram.get_ref());
    }
    let mount = machine.mount.as_ref()?.get_ref();
    let disk = machine.disk(&mount.disk).expect("checked when loaded");
    let spec = fs_spec(&mm.rules, mount, disk as u16, &machine.disks[disk], room[disk]);
    Some((mm.vfs_mkfs(spec), disk as u16))
}

/// The file system of a mount on a disk of which `room` is left.
fn fs_spec(rules: &Rules, mount: &Mount, device: u16, disk: &Disk, room: Bytes) -> FsSpec {
    let size = mount.partition(room);
    let made = match *mount.fs.get_ref() {
        FileSystem::Xfs => {
            let made = FsSpec::xfs(device, size);
            let made = if rules.xfs_format == XfsFormat::Plain { made.without_crc() } else { made };
            let made = if matches!(disk.device.get_ref(), DeviceSpec::Raid0(_)) { made.striped() } else { made };
            let ag_count = mount.allocation_groups.unwrap_or(made.ag_count);
            FsSpec { log: mount.log.map_or(made.log, |log| log.0), ag_count, ..made }
        }
        FileSystem::Ext4 => {
            let crc = rules.ext4_format == Ext4Format::Checksums && !mount.block_mapped;
            let made = FsSpec { crc, ..FsSpec::ext4(device, size) };
            if mount.flex_bg { made.with_flex_bg() } else { made }
        }
    };
    FsSpec { noatime: mount.noatime, block_mapped: mount.block_mapped, ..made }
}

/// A time below another: how far in its interval something regular is when a run starts.
fn drawn_below(streams: &sim::Streams, stream: &str, interval: Nanos) -> Nanos {
    use rand::Rng;
    Nanos(streams.rng(stream).random_range(0..interval.0))
}

/// What things cost on a machine under a kernel with such rules.
fn costs(machine: &Machine, rules: &Rules) -> Costs {
    let costs = Costs::default().at_speed(*machine.cpus.speed.get_ref()).with_paths(rules.path_length);
    let costs = match rules.crc32c {
        Crc32c::Module if machine.cpus.bare_boot => costs.with_crc32c_by_tables(),
        Crc32c::Module | Crc32c::BuiltIn => costs,
    };
    let costs = match rules.unseeded_random {
        UnseededRandom::Extracted if machine.cpus.bare_boot => costs.with_extracted_random(),
        UnseededRandom::Extracted | UnseededRandom::Batched => costs,
    };
    let costs = match &machine.cpus.page_ns {
        Some(ns) => costs.with_page_ns(*ns.get_ref()),
        None => costs,
    };
    let Some(ns) = &machine.cpus.compress_ns else { return costs };
    let CompressNs { lzo, lz4, zstd, .. } = *ns.get_ref();
    costs.with_compress_ns(CompressCosts { lzo, lz4, zstd })
}

/// What copying to or from a RAM disk costs.
fn copy_costs(ram: &blockdev::RamSpec) -> CopyCosts {
    let page = |op| Nanos(PAGE_SIZE * 1_000_000_000 / ram.bytes_per_s(op));
    CopyCosts { bio: Nanos(ram.latency_ns), read: page(blockdev::Op::Read), write: page(blockdev::Op::Write) }
}

/// When the bios of a device end.
fn bio_end(device: &DeviceSpec) -> BioEnd {
    match device {
        DeviceSpec::Ram(ram) if ram.synchronous => BioEnd::Synchronous(copy_costs(ram)),
        DeviceSpec::Ram(ram) => BioEnd::Copy(copy_costs(ram)),
        _ => BioEnd::Interrupt,
    }
}

/// What a device takes in one request.
fn request_limits(device: &DeviceSpec) -> RequestLimits {
    match device {
        DeviceSpec::Hdd(_) | DeviceSpec::Ssd(_) => RequestLimits::SATA,
        DeviceSpec::Raid0(raid) => request_limits(&raid.members[0]).striped((raid.chunk_bytes / PAGE_SIZE) as u32),
        DeviceSpec::Ram(_) => RequestLimits::RAM,
        DeviceSpec::Usb(_) => RequestLimits::USB,
    }
}

/// Puts a swap area at the end of what is left of its disk.
fn add_swap(mm: &mut Mm, machine: &Machine, area: &SwapArea, room: &mut [Bytes]) {
    let disk = machine.disk(&area.disk).expect("checked when loaded");
    let Bytes(size) = area.size.0;
    room[disk] = Bytes(room[disk].0 - size);
    mm.swap.add_device(&SwapSpec {
        device: disk as u16,
        start_sector: room[disk].0 / blockdev::SECTOR_SIZE,
        pages: Bytes(size).pages_down().0 as u32,
        priority: area.priority,
        rotational: matches!(machine.disks[disk].device.get_ref(), DeviceSpec::Hdd(_)),
    });
}

/// Starts to use a zram, under a number that no disk has.
fn add_zram(mm: &mut Mm, device: u16, zram: &ZramDef) {
    mm.swap.add_zram(device, zram.size.0.pages_down().0 as u32, zram.priority, zram.compressor);
}

/// Gives the world its wait queues and devices, which need the simulation.
fn wire(
    world: &mut World,
    ctl: &mut Ctl<World>,
    machine: &Machine,
    nr_nodes: usize,
    streams: &sim::Streams,
) -> Result<(), RunError> {
    use rand::RngCore;
    world.queues = Queues::new(ctl, nr_nodes, machine.disks.len());
    let mut devices = Vec::new();
    for disk in &machine.disks {
        let seed = streams.rng(&format!("disk/{}", disk.name)).next_u64();
        let device = Device::new(disk.device.get_ref(), &disk.queue, seed, || ctl.new_wait_queue())
            .map_err(|error| RunError::Device(disk.name.get_ref().clone(), error))?;
        devices.push(device);
    }
    let mounted = machine.mount.as_ref().and_then(|mount| machine.disk(&mount.get_ref().disk));
    let copying =
        machine.disks.iter().enumerate().filter(|(_, disk)| matches!(disk.device.get_ref(), DeviceSpec::Ram(_)));
    let copying = copying.map(|(number, _)| number as u16).collect();
    world.devices = Devices::new(devices, copying, mounted.map(|disk| disk as u16));
    ctl.schedule_after(drawn_below(streams, "vmstat", STAT_INTERVAL), Class::Timer, Event::Vmstat);
    if world.mm.rules.slab_allocator != SlabAllocator::Slub {
        ctl.schedule_after(drawn_below(streams, "slab-reap", REAP_INTERVAL), Class::Timer, Event::SlabReap);
    }
    // The run begins between two flushes, and two looks of kcompactd, which have come at their intervals since boot.
    let unknown = drawn_below(streams, "uptime", UPTIME_GRAIN);
    let [first_flush, first_look] = first_after_boot(world.mm.rules.boot_timers);
    let until_next = |interval: Nanos, first: Nanos, stream: &str| {
        let since_last = match &machine.uptime_s {
            Some(uptime_s) => (Nanos::from_secs_f64(*uptime_s.get_ref()) + unknown).since(first).0 % interval.0,
            None => drawn_below(streams, stream, interval).0,
        };
        Nanos(interval.0 - since_last)
    };
    world.mm.flush_lru_stats();
    ctl.schedule_after(until_next(MEMCG_FLUSH_INTERVAL, first_flush, "memcg-flush"), Class::Timer, Event::MemcgStats);
    world.mm.set_kcompactd_phase(until_next(PROACTIVE_INTERVAL, first_look, "kcompactd"));
    Ok(())
}

fn start_daemons(
    sim: &mut Sim<World>,
    topology: &CpuTopology,
    nr_nodes: usize,
    nr_devices: usize,
    mounted: Option<(FsId, u16)>,
) {
    for node in (0..nr_nodes).map(|n| NodeId(n as u8)) {
        let cpus = CpuSet::of_node(topology, node);
        let options = SpawnOptions::new(format!("kswapd{}", node.0), cpus).daemon();
        let kswapd = sim.spawn(options, |ctx| task::kswapd(ctx, node));
        sim.with_world(|world, _| {
            let flags = &mut world.task_mut(kswapd).flags;
            flags.kswapd = true;
            flags.memalloc = true;
        });
        let options = SpawnOptions::new(format!("kcompactd{}", node.0), cpus).daemon();
        sim.spawn(options, |ctx| task::kcompactd(ctx, node));
    }
    if let Some((fs, device)) = mounted {
        start_fs_daemons(sim, topology, fs, device);
    }
    if sim.with_world(|world, _| (0..nr_devices as u16).any(|device| world.mm.copies(device))) {
        let options = SpawnOptions::new("kworker/throttle", CpuSet::all(topology)).daemon();
        sim.spawn(options, task::throttle_dispatch);
    }
    for cpu in topology.cpus() {
        let options = SpawnOptions::new(format!("kworker/{}", cpu.0), CpuSet::single(cpu)).daemon();
        sim.spawn(options, |ctx| task::worker(ctx, cpu));
    }
    let options = SpawnOptions::new("khugepaged", CpuSet::all(topology)).nice(19).daemon();
    sim.spawn(options, task::khugepaged);
    let options = SpawnOptions::new("kworker/zswap", CpuSet::all(topology)).daemon();
    sim.spawn(options, task::zswap_shrink);
    for device in 0..nr_devices as u16 {
        let wb = WbId::root(device);
        let flusher = sim.spawn(task::flusher_options(topology, wb), |ctx| task::flusher(ctx, wb));
        sim.with_world(|world, _| world.flushers.push(flusher));
    }
}

/// What works for a mounted file system.
fn start_fs_daemons(sim: &mut Sim<World>, topology: &CpuTopology, fs: FsId, device: u16) {
    let options = |name: &str| SpawnOptions::new(name, CpuSet::all(topology)).daemon();
    sim.spawn(options("kworker/end-io"), task::end_io);
    match sim.with_world(|world, _| world.mm.vfs_kind(fs)) {
        FsKind::Xfs => {
            sim.spawn(options("fs-reclaim"), task::fs_reclaim);
            sim.spawn(options("fs-log"), |ctx| task::fs_log(ctx, fs));
            sim.spawn(options("fs-push"), |ctx| task::fs_push(ctx, fs, device));
        }
        FsKind::Ext4 => {
            sim.spawn(options("jbd2"), |ctx| task::kjournald2(ctx, fs));
        }
    }
}

pub(crate) fn start_workload<F, Fut>(sim: &mut Sim<World>, workload: F)
where
    F: FnOnce(SysTwin) -> Fut,
    Fut: Future<Output = sys::Result<()>> + 'static,
{
    let (process, cpus, group) = sim.with_world(|world, ctl| {
        (world.processes.create(&mut world.mm, ctl), CpuSet::all(ctl.topology()), world.workload_group)
    });
    let task = sim.spawn(SpawnOptions::new("workload", cpus).group(group), |ctx| {
        let sys = SysTwin::new(ctx, process);
        let program = workload(sys.clone());
        sys.run_workload(program)
    });
    let (topology, flushers) = sim.with_world(|world, ctl| {
        world.adopt(ctl, task, process);
        let in_group = world.workload_group.is_some();
        let flushers = if in_group { world.enter_workload_cgroup(ctl, process) } else { Vec::new() };
        (ctl.topology().clone(), flushers)
    });
    for wb in flushers {
        sim.spawn(task::flusher_options(&topology, wb), |ctx| task::flusher(ctx, wb));
    }
}
