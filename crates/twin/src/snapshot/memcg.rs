//! The files of a memory cgroup, as the kernel prints them.
//!
//! Source: `memory_events_show()`, `memory_stat_format()`, `seq_puts_memcg_tunable()` (mm/memcontrol.c), 6.1.
//! Omitted: lines of `memory.stat` whose counters the model does not have.

use std::fmt::Write;

use mm::memcg::{KernelPage, MemcgEvent, MemcgStat, ROOT, UNLIMITED};
use mm::{LruList, Mm};
use observe::{GROUP_COUNTERS, GROUP_NUMBERS, GroupFiles, Snapshot};
use rules::Era;
use sim::{Ctl, Resource};
use units::{MemcgId, PAGE_SIZE};

use super::pressure;
use crate::world::{World, psi_group};

/// Pressure files and their resources.
const PRESSURE: [(&str, Resource); 3] =
    [("cpu.pressure", Resource::Cpu), ("io.pressure", Resource::Io), ("memory.pressure", Resource::Memory)];

/// The groups that the workload made.
pub(crate) fn add_groups(snapshot: &mut Snapshot, world: &World, ctl: &mut Ctl<World>) {
    for memcg in world.mm.memcg.ids().filter(|id| *id != ROOT) {
        let mut group = GroupFiles::default();
        for name in GROUP_COUNTERS.into_iter().chain(GROUP_NUMBERS) {
            let text = memcg_file(&world.mm, memcg, name).expect("a group below the root has the file");
            group.take(name, name, &text).expect("it is printed as the kernel prints it");
        }
        if world.era == Era::V6_12 {
            let files = PRESSURE.map(|(name, resource)| (name, pressure(ctl, psi_group(memcg), resource)));
            group.pressure.extend(files);
        }
        snapshot.groups.insert(world.mm.memcg[memcg].name().to_string(), group);
    }
}

/// A file of a group; none if there is no such file. The root group has `memory.stat` alone.
pub(crate) fn memcg_file(mm: &Mm, memcg: MemcgId, file: &str) -> Option<String> {
    let group = &mm.memcg[memcg];
    let limits = group.limits;
    let bytes = |pages: u64| format!("{}\n", pages * PAGE_SIZE);
    let limit = |pages: u64| if pages == UNLIMITED { "max\n".to_string() } else { bytes(pages) };
    let events = |of: &[MemcgEvent], skip: usize| {
        let line = |event: &MemcgEvent| format!("{} {}\n", &event.name()[skip..], mm.memcg.event(memcg, *event));
        of.iter().map(line).collect::<String>()
    };
    if memcg == ROOT && file != "memory.stat" {
        return None;
    }
    Some(match file {
        "memory.current" => bytes(group.usage()),
        "memory.peak" => bytes(group.peak()),
        "memory.min" => limit(limits.min),
        "memory.low" => limit(limits.low),
        "memory.high" => limit(limits.high),
        "memory.max" => limit(limits.max),
        "memory.swap.current" => bytes(group.swap_usage()),
        "memory.swap.high" => limit(limits.swap_high),
        "memory.swap.max" => limit(limits.swap_max),
        "memory.events" => events(&MemcgEvent::ALL[..5], 0),
        "memory.swap.events" => events(&MemcgEvent::ALL[5..], "swap_".len()),
        "memory.stat" => stat(mm, memcg),
        _ => return None,
    })
}

fn stat(mm: &Mm, memcg: MemcgId) -> String {
    use LruList::{ActiveAnon, ActiveFile, InactiveAnon, InactiveFile, Unevictable};
    let size = |list: LruList| mm.memcg_list_pages(memcg, list) * PAGE_SIZE;
    let mut out = String::new();
    let mut line = |name: &str, value: u64| writeln!(out, "{name} {value}").expect("a string takes it");
    line("anon", size(InactiveAnon) + size(ActiveAnon));
    line("file", size(InactiveFile) + size(ActiveFile));
    let [stacks, tables, pipes] = [KernelPage::Stack, KernelPage::Table, KernelPage::Pipe]
        .map(|kind| mm.memcg_kernel_pages(memcg, kind) * PAGE_SIZE);
    let [reclaimable, unreclaimable] = mm.memcg_slab_bytes(memcg);
    line("kernel", stacks + tables + pipes + mm.memcg_object_pages(memcg) * PAGE_SIZE);
    line("kernel_stack", stacks);
    line("pagetables", tables);
    let (dirty, writeback) = mm.memcg.dirty_pages(memcg);
    line("file_dirty", dirty * PAGE_SIZE);
    line("file_writeback", writeback * PAGE_SIZE);
    for (name, list) in [
        ("inactive_anon", InactiveAnon),
        ("active_anon", ActiveAnon),
        ("inactive_file", InactiveFile),
        ("active_file", ActiveFile),
        ("unevictable", Unevictable),
    ] {
        line(name, size(list));
    }
    line("slab_reclaimable", reclaimable);
    line("slab_unreclaimable", unreclaimable);
    line("slab", reclaimable + unreclaimable);
    for item in MemcgStat::ALL {
        line(item.name(), mm.memcg.stat(memcg, *item));
    }
    out
}
