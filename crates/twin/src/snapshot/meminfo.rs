//! `/proc/meminfo`, as far as the model has it.

use mm::Mm;
use mm::stat::{NodeStat, ZoneStat};
use observe::Meminfo;
use rules::Era;
use units::Pages;

pub(super) fn meminfo(mm: &Mm, era: Era) -> Meminfo {
    let node = |item| Pages(mm.stat.node_sum(item)).kib();
    let zone = |item| Pages(mm.stat.zone_sum(item)).kib();
    let buffers = Pages(mm.blockdev_pages()).kib();
    let (inactive_anon, active_anon) = (node(NodeStat::InactiveAnon), node(NodeStat::ActiveAnon));
    let (inactive_file, active_file) = (node(NodeStat::InactiveFile), node(NodeStat::ActiveFile));
    let fields = [
        ("MemTotal", mm.total_pages().kib()),
        ("MemFree", zone(ZoneStat::FreePages)),
        ("Buffers", buffers),
        // nr_file_pages counts the swap cache, and the page cache of devices, too.
        ("Cached", node(NodeStat::FilePages) - node(NodeStat::SwapCached) - buffers),
        ("SwapCached", node(NodeStat::SwapCached)),
        ("Active", active_anon + active_file),
        ("Inactive", inactive_anon + inactive_file),
        ("Active(anon)", active_anon),
        ("Inactive(anon)", inactive_anon),
        ("Active(file)", active_file),
        ("Inactive(file)", inactive_file),
        ("SwapTotal", Pages(mm.swap.total_pages()).kib()),
        ("SwapFree", Pages(mm.swap.free_pages()).kib()),
        ("Dirty", node(NodeStat::FileDirty)),
        ("Writeback", node(NodeStat::Writeback)),
        ("AnonPages", node(NodeStat::AnonMapped)),
        ("Mapped", node(NodeStat::FileMapped)),
        ("Slab", node(NodeStat::SlabReclaimable) + node(NodeStat::SlabUnreclaimable)),
        ("SReclaimable", node(NodeStat::SlabReclaimable)),
        ("SUnreclaim", node(NodeStat::SlabUnreclaimable)),
        ("PageTables", zone(ZoneStat::PageTablePages)),
        ("AnonHugePages", node(NodeStat::AnonThps) * 512),
    ];
    let mut meminfo = Meminfo::default();
    for (name, kib) in fields {
        meminfo.set(name, kib);
    }
    if era == Era::V6_12 {
        meminfo.set("Zswap", Pages(mm.zswap_total_pages()).kib());
        meminfo.set("Zswapped", Pages(mm.zswap_stored_pages()).kib());
    }
    meminfo
}
