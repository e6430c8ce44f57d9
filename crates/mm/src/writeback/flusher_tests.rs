//! Where in a file the flusher begins, and what it writes of it.

use rules::{BackgroundLimit, CyclicWriteback};
use units::FileId;

use super::{FlushStep, FlushWork, WbId};
use crate::pagecache::rig::Rig;
use crate::{BioTarget, WakeFlusher};

/// The root group's writeback of the device.
const WB: WbId = WbId::root(3);

/// A file whose first `pages` are dirty, and of which a slice has ended at page `at`.
fn dirty_file(rig: &mut Rig, pages: u32, at: u32) -> FileId {
    let file = rig.create();
    for index in 0..pages {
        rig.write(file, index);
    }
    rig.mm.pagecache.trees.writeback_index.set(file.0, at);
    file
}

/// Runs the flusher until it sleeps, and gives the runs of pages that it wrote, with their files.
fn written(rig: &mut Rig) -> Vec<(FileId, u32, u32)> {
    let mut work = FlushWork::default();
    loop {
        match rig.mm.writeback_step(&rig.env, WB, &mut work, 1024) {
            FlushStep::More => rig.collect(),
            FlushStep::Idle(_) => break,
            step => panic!("nothing holds it up: {step:?}"),
        }
    }
    let mut runs: Vec<(FileId, u32, u32)> = Vec::new();
    for bio in &rig.bios {
        let BioTarget::File { file, index: first, .. } = bio.target else { continue };
        let end = first + bio.pages;
        match runs.last_mut() {
            Some((last, _, until)) if *last == file && *until == first => *until = end,
            _ => runs.push((file, first, end)),
        }
    }
    rig.complete_all();
    runs
}

#[test]
fn each_request_for_pages_writes_a_slice_from_a_files_beginning() {
    let mut rig = Rig::new(1, 1 << 14);
    // So that nothing else is written.
    rig.mm.rules.background_limit = BackgroundLimit::Machine;
    rig.mm.tunables.dirty_background_ratio = 90;
    let file = dirty_file(&mut rig, 3000, 2000);
    for pages in [7, 60] {
        assert_eq!(rig.mm.ask_flushers(WakeFlusher::Pages(pages))[..], [WB]);
    }
    // 4 MiB are the least of a slice, and two were asked for: the other 952 pages wait.
    assert_eq!(written(&mut rig), [(file, 0, 2048)]);
    assert_eq!(rig.mm.pagecache.trees.writeback_index.get(file.0), 2000, "it is cyclic writeback's");
    rig.check();
}

#[test]
fn cyclic_writeback_goes_round_a_file_until_4_19() {
    for (rule, turns, place) in [
        (CyclicWriteback::Wraps, [(0, 6, 10), (0, 0, 6), (1, 0, 4)], 5),
        (CyclicWriteback::Ends, [(0, 6, 10), (1, 0, 4), (0, 0, 6)], 0),
    ] {
        let mut rig = Rig::new(1, 1 << 14);
        rig.mm.rules.cyclic_writeback = rule;
        let files = [dirty_file(&mut rig, 10, 6), dirty_file(&mut rig, 4, 0)];
        assert_eq!(written(&mut rig), turns.map(|(file, first, end)| (files[file], first, end)), "{rule:?}");
        assert_eq!(rig.mm.pagecache.trees.writeback_index.get(files[0].0), place, "{rule:?}");
        rig.check();
    }
}
