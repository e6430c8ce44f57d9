//! Large folios of files are moved as a whole, or split where no free block is as large.

use units::FileId;

use super::*;
use crate::pagecache::Slot;
use crate::pagecache::rig::Rig;
use crate::stat::VmEvent;

const PAGES: u32 = 4096;
/// Most that a file can have beside what the kernel needs.
const MOST: u32 = PAGES * 3 / 4;

/// A machine with a file's clean folios of four pages, so many pages in all.
fn with_folios(rule: LargeMigration, pages: u32) -> (Rig, FileId) {
    let mut rig = Rig::with_rules(1, PAGES, Rules { large_migration: rule, ..Rules::newest() });
    let file = rig.create();
    for index in (0..pages).step_by(4) {
        rig.try_write_many(file, index, 4).expect("there is room");
    }
    rig.write_back(file);
    rig.complete_all();
    rig.mm.drain_pcp_all();
    (rig, file)
}

/// Every other folio of so many pages each goes.
fn thin_out(rig: &mut Rig, file: FileId, each: u32, pages: u32) {
    (0..pages).step_by(2 * each as usize).for_each(|index| rig.evict(file, index));
    rig.mm.drain_pcp_all();
}

/// Pages that stand alone, and those in folios of order 2.
fn alone_and_not(mm: &Mm, file: FileId) -> (usize, usize) {
    let orders = (0..PAGES).filter_map(|index| match mm.pagecache_get(file, index) {
        Slot::Page(pfn) => Some(mm.frames[pfn].order().0),
        _ => None,
    });
    let (alone, others): (Vec<u8>, Vec<u8>) = orders.partition(|order| *order == 0);
    assert!(others.iter().all(|order| *order == 2));
    (alone.len(), others.len())
}

fn compact(rig: &mut Rig, control: CompactControl) -> u64 {
    run(&mut rig.mm, control);
    rig.collect();
    rig.check();
    rig.mm.stat.event(VmEvent::PgmigrateSuccess)
}

#[test]
fn folios_below_the_wanted_order_move_as_they_are() {
    let wanted = |order| {
        CompactControl::direct(Order(order), Gfp::TRANSHUGE, CompactPriority::SyncLight, ZoneKind::Normal, FLAGS)
    };
    for (rule, control, moves) in [
        (LargeMigration::BelowOrder, CompactControl::everything(), true),
        (LargeMigration::BelowOrder, wanted(9), true),
        (LargeMigration::BelowOrder, wanted(2), false),
        (LargeMigration::Never, CompactControl::everything(), false),
    ] {
        let (mut rig, file) = with_folios(rule, MOST);
        thin_out(&mut rig, file, 4, MOST);
        let moved = compact(&mut rig, control);
        let (alone, others) = alone_and_not(&rig.mm, file);
        assert_eq!((moved > 0, alone + others), (moves, MOST as usize / 2), "{rule:?}: {moved}");
        // The last cluster may find single pages only, where the scanners are about to meet.
        assert!(alone <= 32, "{alone}");
    }
}

#[test]
fn a_folio_is_split_where_only_single_pages_are_free() {
    let (mut rig, file) = with_folios(LargeMigration::BelowOrder, MOST / 3);
    // Another file takes what is left, page by page, and gives up every other one.
    let other = rig.create();
    (0..MOST / 3 * 2).for_each(|index| _ = rig.write(other, index));
    rig.write_back(other);
    rig.complete_all();
    exhaust_blocks(&mut rig);
    thin_out(&mut rig, other, 1, MOST / 3 * 2);
    assert!(compact(&mut rig, CompactControl::everything()) > 0);
    let (alone, others) = alone_and_not(&rig.mm, file);
    assert!(alone > 0 && alone.is_multiple_of(4), "{alone} of {others}");
}

/// Takes every free block of four pages or more.
fn exhaust_blocks(rig: &mut Rig) {
    let request = AllocRequest { gfp: Gfp::KERNEL, order: Order(2), node: NODE };
    let flags = AllocFlags { wmark: None, ..AllocFlags::only(Wmark::Min) };
    while rig.mm.get_page_from_freelist(&rig.env, request, flags).is_some() {}
}
