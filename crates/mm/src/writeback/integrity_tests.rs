//! No write is lost: what a program wrote is on the device after fsync, or fsync says that it failed.
//!
//! Every write of a page gives it a new version; a bio carries the versions that its pages had when it was submitted, and
//! puts them on the device if it succeeds. Pages are written by the flusher, by kswapd and by fsync; bios end in any order, with
//! and without errors, while files are written to, stored to through mappings, truncated and removed, processes that map them are
//! killed, and the device has hardly any room left.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rules::{
    DirtyThrottle, FilePageout, IoendEnd, MapLock, Rules, StuckPages, WriteErrors, WrittenMeanwhile, XfsBuffers,
    XfsWritepage,
};
use units::{Bytes, FileId, Nanos, Pfn, SpaceId};

use super::{ErrorsSeen, FlushStep, FlushWork, Fsync, FsyncStep, WbId};
use crate::anon::{Touch, TouchStop};
use crate::pagecache::Slot;
use crate::pagecache::rig::{Rig, old_rules};
use crate::vfs::{Handle, Need};
use crate::{Bio, BioTarget, Effect, Frame, TaskFlags};

const DEVICE: u16 = 3;
const FILES: usize = 3;
const PAGES: u32 = 40;
const DEVICE_SIZE: Bytes = Bytes::mib(256);
/// Size of the files that take up the room.
const FILLER_PAGES: u64 = 1024;

#[derive(Clone, Debug)]
enum Op {
    Write {
        file: usize,
        index: u32,
        pages: u32,
    },
    /// The process that maps the file stores to a page.
    Store {
        file: usize,
        index: u32,
    },
    /// That process is killed, and another one takes its place.
    Kill {
        file: usize,
    },
    /// The flusher does so many steps.
    Flush(u32),
    /// kswapd writes a page that it met.
    Pageout {
        file: usize,
        index: u32,
    },
    /// The bio at this place in the queue ends.
    Complete {
        at: usize,
        ok: bool,
    },
    Truncate {
        file: usize,
        pages: u32,
    },
    /// Closes and removes a file, and makes a new one.
    Replace {
        file: usize,
    },
    Fsync {
        file: usize,
        ok: bool,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let file = 0..FILES;
    prop_oneof![
        6 => (file.clone(), 0..PAGES, 1..8u32).prop_map(|(file, index, pages)| Op::Write { file, index, pages }),
        4 => (file.clone(), 0..PAGES).prop_map(|(file, index)| Op::Store { file, index }),
        1 => file.clone().prop_map(|file| Op::Kill { file }),
        3 => (1..6u32).prop_map(Op::Flush),
        2 => (file.clone(), 0..PAGES).prop_map(|(file, index)| Op::Pageout { file, index }),
        4 => (0..8usize, prop::bool::weighted(0.85)).prop_map(|(at, ok)| Op::Complete { at, ok }),
        1 => (file.clone(), 0..PAGES).prop_map(|(file, pages)| Op::Truncate { file, pages }),
        1 => file.clone().prop_map(|file| Op::Replace { file }),
        2 => (file, prop::bool::weighted(0.8)).prop_map(|(file, ok)| Op::Fsync { file, ok }),
    ]
}

/// A page of a file, of the generation that it has since it was last truncated away.
type Place = (u32, u32, u64);

/// A bio with what its pages held when it was submitted.
type Flying = (Bio, Vec<Option<(Place, u64)>>);

/// What is to be true of one open file.
struct Open {
    handle: Handle,
    id: FileId,
    seen: ErrorsSeen,
    /// A write has failed that fsync has not reported.
    failed: bool,
    /// The process that maps the file, and where.
    space: SpaceId,
    base: u32,
}

struct World {
    rig: Rig,
    files: Vec<Open>,
    version: u64,
    generation: u64,
    /// Version and generation of each page that was written.
    cache: BTreeMap<(u32, u32), (u64, u64)>,
    device: BTreeMap<Place, u64>,
    /// Pages whose write failed, so that the device need not have them.
    lost: BTreeSet<(u32, u32)>,
    /// Bios under way, with what they carry.
    flying: Vec<Flying>,
    flusher: FlushWork,
}

fn open(rig: &mut Rig) -> Open {
    let handle = rig.mm.vfs_create(&rig.env, rig.dir).expect("memory is plentiful");
    let seen = rig.mm.sample_write_errors(handle.file);
    let (space, base) = map(rig, handle.file);
    Open { handle, id: handle.file, seen, failed: false, space, base }
}

/// A process that maps a file.
fn map(rig: &mut Rig, file: FileId) -> (SpaceId, u32) {
    let space = rig.mm.space_create();
    (space, rig.mm.mmap_file(space, file, PAGES, crate::pagecache::Readahead::default()))
}

impl World {
    /// A world whose device has room for so many pages more.
    fn new(rules: Rules, room: u64) -> World {
        let mut rig = Rig::on_device(1, 1 << 12, rules, DEVICE_SIZE);
        let files: Vec<Open> = (0..FILES).map(|_| open(&mut rig)).collect();
        while let surplus @ 1.. = rig.mm.room_of(files[0].id).saturating_sub(room) {
            rig.mm.vfs_populate(rig.dir, surplus.min(FILLER_PAGES) as u32);
        }
        World {
            rig,
            files,
            version: 0,
            generation: 0,
            cache: BTreeMap::new(),
            device: BTreeMap::new(),
            lost: BTreeSet::new(),
            flying: Vec::new(),
            flusher: FlushWork::default(),
        }
    }

    /// Takes what was submitted, with the versions that the pages have now.
    fn collect(&mut self) {
        self.rig.collect();
        for bio in std::mem::take(&mut self.rig.bios) {
            let carried = match bio.target {
                BioTarget::File { file, index } => {
                    assert!(bio.write, "nothing is read here");
                    let version = |at: u32| self.cache.get(&(file.0, at)).map(|&(v, g)| ((file.0, at, g), v));
                    (index..index + bio.pages).map(version).collect()
                }
                _ => Vec::new(),
            };
            self.flying.push((bio, carried));
        }
    }

    fn complete(&mut self, at: usize, ok: bool) {
        if self.flying.is_empty() {
            return;
        }
        let (bio, carried) = self.flying.remove(at % self.flying.len());
        // The log is not what is tested.
        let ok = ok || bio.target == BioTarget::Metadata;
        for ((file, index, generation), version) in carried.into_iter().flatten() {
            if ok {
                self.device.insert((file, index, generation), version);
            } else if self.cache.get(&(file, index)) == Some(&(version, generation)) {
                self.lost.insert((file, index));
            }
        }
        if let (false, BioTarget::File { file, .. }) = (ok, bio.target)
            && let Some(open) = self.files.iter_mut().find(|open| open.id == file)
        {
            open.failed = true;
        }
        self.rig.mm.end_writeback(&self.rig.env, &bio, ok);
        self.rig.end_io();
        self.collect();
    }

    fn write(&mut self, file: usize, from: u32, pages: u32) {
        let id = self.files[file].id;
        for index in from..(from + pages).min(PAGES) {
            if let (WrittenMeanwhile::Waits, Slot::Page(pfn)) =
                (self.rig.mm.rules.written_meanwhile, self.rig.mm.pagecache_get(id, index))
            {
                self.complete_page(pfn, true);
            }
            if self.rig.try_write(id, index).is_none() {
                return;
            }
            self.changed(id, index);
        }
    }

    /// A page has new content.
    fn changed(&mut self, id: FileId, index: u32) {
        self.version += 1;
        let generation = self.cache.get(&(id.0, index)).map_or(self.generation, |&(_, g)| g);
        self.cache.insert((id.0, index), (self.version, generation));
        self.lost.remove(&(id.0, index));
        self.collect();
    }

    /// A store to a page of the mapping that was written before, so that nothing is read; a signal instead where there is no room.
    fn store(&mut self, file: usize, index: u32) {
        let Open { id, space, base, .. } = self.files[file];
        if !self.cache.contains_key(&(id.0, index)) {
            return;
        }
        let mut touch = Touch::new(space, base + index, 1, true, u64::MAX >> 1);
        loop {
            match self.rig.mm.touch(&self.rig.env, &mut touch, None) {
                TouchStop::Dirtied(..) => {}
                TouchStop::Done => return self.changed(id, index),
                TouchStop::IoError => return self.collect(),
                TouchStop::WaitWriteback(pfn) => self.complete_page(pfn, true),
                stop => panic!("every page is in memory: {stop:?}"),
            }
        }
    }

    /// Completes bios until a page is not under writeback any more.
    fn complete_page(&mut self, pfn: Pfn, ok: bool) {
        self.collect();
        while self.rig.mm.frames[pfn].has(Frame::WRITEBACK) {
            // It may be in a bio that the flusher has not submitted yet.
            self.flush(u32::from(self.flying.is_empty()));
            self.complete(0, ok);
        }
    }

    fn kill(&mut self, file: usize) {
        self.rig.mm.space_exit(&self.rig.env, self.files[file].space);
        let (space, base) = map(&mut self.rig, self.files[file].id);
        (self.files[file].space, self.files[file].base) = (space, base);
        self.collect();
    }

    fn flush(&mut self, steps: u32) {
        self.rig.at(Nanos(self.rig.env.now.0 + Nanos::secs(6).0));
        self.rig.mm.ask_flushers(crate::WakeFlusher::Vmscan);
        for _ in 0..steps {
            let step = self.rig.mm.writeback_step(&self.rig.env, WbId::root(DEVICE), &mut self.flusher, 8);
            self.collect();
            if step != FlushStep::More {
                break;
            }
        }
    }

    fn pageout(&mut self, file: usize, index: u32) {
        let Slot::Page(pfn) = self.rig.mm.pagecache_get(self.files[file].id, index) else { return };
        if self.rig.mm.frames[pfn].has(Frame::DIRTY) {
            let kswapd =
                crate::Env { task: TaskFlags { kswapd: true, memalloc: true, ..TaskFlags::default() }, ..self.rig.env };
            self.rig.mm.pageout_file(&kswapd, pfn);
            self.collect();
        }
    }

    fn truncate(&mut self, file: usize, pages: u32) {
        let id = self.files[file].id;
        self.rig.mm.truncate_pages(&self.rig.env, id, pages);
        let size = self.rig.mm.inode_size_pages(id).min(pages);
        self.rig.mm.set_inode_size_pages(&self.rig.env, id, size);
        self.forget(id, pages);
        self.collect();
    }

    /// Pages from here on do not exist any more; later ones in their places are others.
    fn forget(&mut self, id: FileId, from: u32) {
        self.generation += 1;
        self.cache.retain(|&(file, index), _| file != id.0 || index < from);
        self.lost.retain(|&(file, index)| file != id.0 || index < from);
    }

    fn replace(&mut self, file: usize) {
        let id = self.files[file].id;
        self.rig.mm.space_exit(&self.rig.env, self.files[file].space);
        while let Err(need) = self.rig.mm.vfs_unlink(&self.rig.env, id) {
            assert!(matches!(need, Need::Read(_)), "{need:?}");
        }
        self.rig.mm.vfs_close(&self.rig.env, self.files[file].handle);
        self.forget(id, 0);
        self.files[file] = open(&mut self.rig);
        self.collect();
    }

    /// Returns whether fsync reports an error.
    fn fsync(&mut self, file: usize, ok: bool) -> bool {
        let id = self.files[file].id;
        let mut fsync = Fsync::default();
        for _ in 0..10_000 {
            let step = self.rig.mm.fsync_step(&self.rig.env, id, &mut fsync);
            self.collect();
            match step {
                FsyncStep::More => {}
                FsyncStep::Journal(_) => panic!("nothing commits"),
                FsyncStep::Wait(pfn) => self.complete_page(pfn, ok),
                FsyncStep::Log(bio) => {
                    assert!(!self.rig.mm.begin_metadata(bio), "the device does not copy");
                    self.collect();
                }
                FsyncStep::Done => {
                    let mut seen = self.files[file].seen;
                    let failed = self.rig.mm.report_write_error(id, &mut seen);
                    self.files[file].seen = seen;
                    return failed;
                }
            }
        }
        panic!("fsync does not end");
    }

    /// Everything of the file is on the device but what a reported error was about.
    fn check_on_device(&self, file: usize) {
        let id = self.files[file].id;
        for (&(owner, index), &(version, generation)) in self.cache.iter().filter(|((owner, _), _)| *owner == id.0) {
            if !self.lost.contains(&(owner, index)) {
                let on_device = self.device.get(&(owner, index, generation));
                assert_eq!(on_device, Some(&version), "page {index} of {id:?} is not on the device as it was written");
            }
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Write { file, index, pages } => self.write(file, index, pages),
            Op::Store { file, index } => self.store(file, index),
            Op::Kill { file } => self.kill(file),
            Op::Flush(steps) => self.flush(steps),
            Op::Pageout { file, index } => self.pageout(file, index),
            Op::Complete { at, ok } => self.complete(at, ok),
            Op::Truncate { file, pages } => self.truncate(file, pages),
            Op::Replace { file } => self.replace(file),
            Op::Fsync { file, ok } => {
                let reported = self.fsync(file, ok);
                let failed = std::mem::take(&mut self.files[file].failed);
                assert_eq!(reported, failed, "fsync of {:?} and the device disagree", self.files[file].id);
                self.check_on_device(file);
            }
        }
    }
}

/// 3.1's rules of writeback on what the other tests call old.
fn rules_3_1() -> Rules {
    Rules {
        file_pageout: FilePageout::Anyone,
        stuck_pages: StuckPages::Inactive,
        dirty_throttle: DirtyThrottle::WriterWrites,
        written_meanwhile: WrittenMeanwhile::Waits,
        xfs_writepage: XfsWritepage::Cluster,
        ioend_end: IoendEnd::LastBio,
        map_lock: MapLock::Try,
        xfs_buffers: XfsBuffers::BufferHeads,
        write_errors: WriteErrors::Flag,
        ..old_rules()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_was_written_is_on_the_device_after_fsync_or_fsync_fails(
        ops in prop::collection::vec(op(), 1..120),
        era in 0..3usize,
        room in prop_oneof![Just(1 << 20), 0..60_u64],
    ) {
        let rules = [rules_3_1(), old_rules(), Rules::newest()][era].clone();
        let mut world = World::new(rules, room);
        for op in &ops {
            world.apply(op);
        }
        // In the end, with a device that works again, nothing is left behind.
        for file in 0..FILES {
            let reported = world.fsync(file, true);
            prop_assert_eq!(reported, std::mem::take(&mut world.files[file].failed));
            world.check_on_device(file);
        }
        prop_assert!(world.rig.effects.iter().all(|effect| !matches!(effect, Effect::Submit(_))));
    }
}
