//! What a booted machine holds and runs before a workload starts on it.
//!
//! Rule: the kernel's own memory (pages, slab objects, stacks of its threads) is allocated as a boot does it, one kind in
//! turn with the other, and stays, but for objects that come and go: a seventh of their places is free, one here and one there, and serves
//! whoever asks next, memory or none. Then daemons start: each fills its memory and sleeps; every so often it wakes up and
//! uses a part of it, the same each time.
//! Source: the sizes are the machine's (`[booted]`); the shares of the caches are those of guests of 6.12 before their
//! workload (`/proc/slabinfo`), without the caches that tasks bring along.
//! Abstracted: threads of daemons are processes; all daemons are of one size; what shrinkers can free of the boot's
//! dentries and inodes is gone; what is free of slabs is every seventh object, where it clusters on a real machine. That a daemon uses an eighth of its memory is a guess.
//! Omitted: the files that daemons map and those that the boot has read; daemons that log.

use mm::slab::{CacheId, Obj};
use mm::{Env, Mm, TaskFlags, TaskMemory};
use profile::Booted;
use sim::{CpuSet, Sim, SpawnOptions};
use sys::{Access, Sys};
use units::{Bytes, CpuId, Gfp, Nanos, NodeId, PAGE_SIZE};

use crate::sys::SysTwin;
use crate::world::World;

/// Unreclaimable slabs by cache: KiB in a guest.
const UNRECLAIMABLE: &[(CacheId, u64)] = &[
    (CacheId::KMALLOC_1K, 312),
    (CacheId::KMALLOC_2K, 288),
    (CacheId::KMALLOC_96, 212),
    (CacheId::KMALLOC_8K, 160),
    (CacheId::KMALLOC_512, 136),
    (CacheId::KMALLOC_4K, 128),
    (CacheId::KMALLOC_32, 124),
    (CacheId::KMALLOC_256, 104),
    (CacheId::KMALLOC_192, 70),
    (CacheId::KMALLOC_128, 48),
    (CacheId::KMALLOC_16, 28),
    (CacheId::KMALLOC_8, 24),
];
/// The same of reclaimable ones.
const RECLAIMABLE: &[(CacheId, u64)] = &[
    (CacheId::SHMEM_INODE, 311),
    (CacheId::RADIX_TREE_NODE, 199),
    (CacheId::INODE, 169),
    (CacheId::DENTRY, 161),
    (CacheId::PROC_INODE, 30),
];
/// Of so many objects one was freed again since the boot. `slabtop` on machines that are in use: 85 and 84 % of slabs' bytes
/// are those of objects in use (valavil.in/2018/08/11/slabinfo-kernel-slab-allocator-statistics, slabtop(1) at trumanwl.com).
const FREED: usize = 7;
/// Parts in which the kernel's memory is allocated, one kind after the other.
const TURNS: u64 = 64;
/// Of its memory a daemon uses one in so many pages after its start.
const IN_USE: u64 = 8;

/// Allocates the kernel's own memory; false if there is not enough.
pub(crate) fn allocate(mm: &mut Mm, booted: &Booted) -> bool {
    let env = Env { now: Nanos::ZERO, cpu: CpuId(0), node: NodeId(0), task: TaskFlags::default() };
    let mut boot = Boot { mm, env, objects: Vec::new() };
    let fits = (0..TURNS).all(|turn| boot.take_turn(booted, turn));
    boot.free_some();
    // What the machine did before is not the run's.
    mm.take_cpu_ns();
    fits
}

/// A boot that goes on.
struct Boot<'a> {
    mm: &'a mut Mm,
    env: Env,
    /// Objects allocated so far.
    objects: Vec<(CacheId, Obj)>,
}

impl Boot<'_> {
    /// Allocates one turn's part of each kind of memory; false if there is not enough.
    fn take_turn(&mut self, booted: &Booted, turn: u64) -> bool {
        let part = |whole: u64| whole * (turn + 1) / TURNS - whole * turn / TURNS;
        let pages = part(booted.pages.get_ref().0.0 / PAGE_SIZE);
        let threads = part(u64::from(*booted.kernel_threads.get_ref()));
        (0..pages).all(|_| self.mm.hold_page(&self.env, Gfp::KERNEL))
            && self.hold_objects(UNRECLAIMABLE, part(booted.slab_unreclaimable.get_ref().0.0))
            && self.hold_objects(RECLAIMABLE, part(booted.slab_reclaimable.get_ref().0.0))
            && (0..threads).all(|_| self.mm.begin_task(&self.env, &mut TaskMemory::default(), false).is_ok())
    }

    /// Allocates objects, of each cache its share of so many bytes.
    fn hold_objects(&mut self, shares: &[(CacheId, u64)], bytes: u64) -> bool {
        let all: u64 = shares.iter().map(|(_, share)| share).sum();
        shares.iter().all(|&(cache, share)| {
            let size = u64::from(self.mm.slabs.object_size(cache));
            (0..bytes * share / all / size).all(|_| self.hold_object(cache))
        })
    }

    fn hold_object(&mut self, cache: CacheId) -> bool {
        let obj = self.mm.slab_alloc(&self.env, cache, Gfp::KERNEL);
        self.objects.extend(obj.map(|obj| (cache, obj)));
        obj.is_ok()
    }

    /// Frees what is not in use any more.
    fn free_some(&mut self) {
        for &(cache, obj) in self.objects.iter().step_by(FREED) {
            self.mm.slab_free(&self.env, cache, obj);
        }
    }
}

/// Starts the daemons.
pub(crate) fn start_daemons(sim: &mut Sim<World>, booted: &Booted) {
    let daemons = *booted.daemons.get_ref();
    let size = Bytes(booted.anon.get_ref().0.0 / u64::from(daemons.max(1)) / PAGE_SIZE * PAGE_SIZE);
    let period = Nanos::from_secs_f64(*booted.period_s.get_ref());
    for _ in 0..daemons {
        let (process, cpus) =
            sim.with_world(|world, ctl| (world.processes.create(&mut world.mm, ctl), CpuSet::all(ctl.topology())));
        let task = sim.spawn(SpawnOptions::new("daemon", cpus).daemon(), |ctx| {
            let sys = SysTwin::new(ctx, process);
            sys.clone().live(true, async move {
                // One that is killed, or finds no memory, is gone; the workload goes on.
                let _ = serve(&sys, size, period).await;
            })
        });
        sim.with_world(|world, ctl| world.adopt(ctl, task, process));
    }
}

async fn serve(sys: &SysTwin, size: Bytes, period: Nanos) -> sys::Result<()> {
    let heap = sys.mmap(size, Bytes(PAGE_SIZE)).await?;
    sys.touch(heap, Bytes(0), size, Access::Write).await?;
    let in_use = Bytes((size.0 / IN_USE).next_multiple_of(PAGE_SIZE).min(size.0));
    loop {
        sys.sleep(period).await;
        sys.touch(heap, Bytes(0), in_use, Access::Write).await?;
    }
}

#[cfg(test)]
mod tests {
    use mm::stat::NodeStat;
    use profile::{Kernel, Machine};

    use super::*;
    use crate::RunSpec;
    use crate::run::boot;

    #[test]
    fn a_booted_machine_holds_what_its_file_says() {
        let machine = Machine::load("desktop-4g").expect("built in");
        let kernel = Kernel::load("3.19-rc4").expect("built in");
        let mut sim = boot(&RunSpec::new(machine, kernel)).expect("it has room");
        sim.run_until(Nanos::secs(25)).expect("daemons only sleep");
        let world = sim.world();
        let gauge = |item| world.mm.stat.node(NodeId(0), item);
        // 32000 pages for 63 daemons, each in whole pages.
        assert_eq!(gauge(NodeStat::AnonMapped), 63 * 507);
        // 12 MiB of objects, and what slabs leave over: an inode of 600 to 704 bytes a twelfth at most.
        assert!((3072..=3072 * 12 / 11).contains(&gauge(NodeStat::SlabReclaimable)));
        // 26 MiB, and what 163 tasks take: 7 KiB for each, and 15 KiB more for a process.
        let tasks = (163 * 7 + 63 * 15) / 4;
        let unreclaimable = gauge(NodeStat::SlabUnreclaimable);
        assert!((26 * 256..26 * 256 + 2 * tasks).contains(&unreclaimable), "{unreclaimable}");
        // A seventh of the objects is free; what CPUs hold counts as used.
        let kmalloc =
            world.mm.slabs.slabinfo().find(|info| info.name == "kmalloc-512").expect("it is the first of its size");
        let free = kmalloc.num_objs - kmalloc.active_objs;
        assert!((kmalloc.num_objs / 8..=kmalloc.num_objs / 7).contains(&free), "{free} of {}", kmalloc.num_objs);
        assert!(world.mm.validate().is_empty());
    }

    #[test]
    fn too_much_is_refused() {
        let text = Machine::load("desktop-4g").expect("built in").text;
        let text = text.replace("memory = \"4GiB\"", "memory = \"160MiB\"").replace("\"125MiB\"", "\"1MiB\"");
        let machine = Machine::from_text("x.toml", &text).expect("half of it at most");
        let kernel = Kernel::load("3.19-rc4").expect("built in");
        // 76 MiB of 160 fit; 40000 stacks of 16 KiB do not.
        assert!(boot(&RunSpec::new(machine, kernel.clone())).is_ok());
        let text = text.replace("kernel-threads = 100", "kernel-threads = 40000");
        let machine = Machine::from_text("x.toml", &text).expect("each size is possible");
        assert!(matches!(boot(&RunSpec::new(machine, kernel)), Err(crate::RunError::NoRoom(_))));
    }
}
