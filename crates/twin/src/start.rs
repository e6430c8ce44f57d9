//! From a machine's description of its zones to the state that a run starts from.

use mm::anon::StartAnon;
use mm::zone::{KernelImage, StartError, ZoneStart};
use mm::{Env, MigrateType, Mm, TaskFlags};
use profile::{ImageDef, MIGRATE_TYPES, Size, ZoneDef};
use units::{CpuId, Nanos, NodeId, Pfn, ZoneId};

use crate::RunSpec;

/// Pages that a page table maps.
const LEAF_PAGES: u32 = 512;
/// Page tables above those, of one process.
const UPPER_TABLES: u32 = 3;

/// Puts every zone that the machine describes into its state.
///
/// # Errors
/// A zone cannot be in that state.
pub(crate) fn start(mm: &mut Mm, spec: &RunSpec) -> Result<(), StartError> {
    let machine = &spec.machine;
    let zones: Vec<&ZoneDef> = (0..machine.nodes.len()).flat_map(|node| machine.zones_of(node)).collect();
    let image = spec.kernel.image.as_ref().map(image_of);
    let as_booted = keeps_boot_limits(spec);
    for (number, zone) in zones.iter().enumerate() {
        let mut start = ZoneStart { image: image.clone(), ..state_of(zone) };
        if !as_booted {
            (start.watermarks, start.pcp_batch) = (None, None);
        }
        mm.start_zone(ZoneId(number as u8), &start)?;
    }
    let env = Env { now: Nanos::ZERO, cpu: CpuId(0), node: NodeId(0), task: TaskFlags::default() };
    // The highest zones gave their memory first, so that it is the oldest.
    for (number, zone) in zones.iter().enumerate().rev() {
        let anon = StartAnon {
            active: zone.anon[1] as u32,
            inactive: zone.anon[0] as u32,
            mapped: zone.mapped as u32,
            unevictable: (zone.unevictable + zone.locked) as u32,
        };
        mm.start_anon(&env, ZoneId(number as u8), &anon)?;
    }
    // What the machine did before is not the run's.
    mm.take_cpu_ns();
    Ok(())
}

/// Whether watermarks and batches are those that the machine had: a setting that they follow from, written after that, sets them anew.
fn keeps_boot_limits(spec: &RunSpec) -> bool {
    let had = spec.kernel.tunables_with(&spec.machine.sysctls());
    had.is_ok_and(|had| had.give_watermarks_of(&spec.tunables))
}

fn frame_at(address: Size) -> Pfn {
    Pfn(address.0.pages_down().0 as u32)
}

fn image_of(def: &ImageDef) -> KernelImage {
    KernelImage {
        start: frame_at(def.start),
        text: def.text.0.pages_up(),
        rodata: def.rodata.0.pages_up(),
        boot_only: def.boot_only.iter().map(|part| (frame_at(part.start), frame_at(part.end))).collect(),
        free: def.free,
    }
}

fn state_of(zone: &ZoneDef) -> ZoneStart {
    let anon = (zone.anon.iter().sum::<u64>() + zone.unevictable) as u32;
    let mut start = ZoneStart {
        pcp: zone.pcp.iter().map(|pcp| (pcp.count as u32, pcp.high as u32)).collect(),
        spare: anon,
        spare_kernel: if anon > 0 { anon.div_ceil(LEAF_PAGES) + UPPER_TABLES } else { 0 },
        lowmem_reserve: zone.protection,
        watermarks: zone.watermarks,
        pcp_batch: zone.batch.map(|pages| pages as u32),
        ..ZoneStart::default()
    };
    for migratetype in MigrateType::ALL {
        let name = MIGRATE_TYPES[migratetype as usize];
        start.pageblocks[migratetype as usize] = zone.pageblocks.get(name).copied().unwrap_or(0);
        for (order, blocks) in zone.free.get(name).into_iter().flatten().enumerate() {
            start.free[migratetype as usize][order] = *blocks;
        }
    }
    start
}
