//! A small machine with one XFS on device 3, whose bios are completed by hand.

use std::collections::VecDeque;

use rules::{ReadaheadWindow, Rules};
use units::{Bytes, FileId, Gfp, Nanos, Pfn};

use super::{PageWrite, ReadStop, Readahead, Slot, WriteStop};
use crate::slab::tests::{machine, on, rules_4_20};
use crate::vfs::{DirId, FsSpec, Need};
use crate::writeback::EndIoStep;
use crate::{AllocRequest, Bio, Effect, Env, Frame, Mm};

pub(crate) struct Rig {
    pub(crate) mm: Mm,
    pub(crate) env: Env,
    pub(crate) dir: DirId,
    /// Bios submitted and not completed, oldest first.
    pub(crate) bios: VecDeque<Bio>,
    /// Other effects.
    pub(crate) effects: Vec<Effect>,
}

pub(crate) fn old_rules() -> Rules {
    Rules {
        readahead_window: ReadaheadWindow::OnDemand,
        inode_reclaim: rules::InodeReclaim::SkipWithPages,
        xfs_writepage: rules::XfsWritepage::OnePage,
        ..rules_4_20()
    }
}

impl Rig {
    pub(crate) fn new(nodes: u32, pages: u32) -> Rig {
        Rig::with_rules(nodes, pages, old_rules())
    }

    pub(crate) fn with_rules(nodes: u32, pages: u32, rules: Rules) -> Rig {
        Rig::on_device(nodes, pages, rules, Bytes::gib(64))
    }

    /// One whose device has this size.
    pub(crate) fn on_device(nodes: u32, pages: u32, rules: Rules, size: Bytes) -> Rig {
        Rig::on_fs(machine(nodes, pages, rules), FsSpec::xfs(3, size))
    }

    /// A machine with an ext4, and the newest rules.
    pub(crate) fn ext4(pages: u32) -> Rig {
        Rig::ext4_with(pages, Rules::newest())
    }

    /// A machine with an ext4.
    pub(crate) fn ext4_with(pages: u32, rules: Rules) -> Rig {
        Rig::ext4_on(pages, rules, Bytes::gib(64))
    }

    /// A machine with an ext4 on a device of this size.
    pub(crate) fn ext4_on(pages: u32, rules: Rules, size: Bytes) -> Rig {
        Rig::on_fs(machine(1, pages, rules), FsSpec::ext4(3, size))
    }

    /// A machine with an ext3.
    pub(crate) fn ext3(pages: u32) -> Rig {
        let spec = FsSpec { block_mapped: true, ..FsSpec::ext4(3, Bytes::gib(64)) };
        Rig::on_fs(machine(1, pages, Rules::newest()), spec)
    }

    fn on_fs(mut mm: Mm, spec: FsSpec) -> Rig {
        let fs = mm.vfs_mkfs(spec);
        let dir = mm.vfs_root(fs);
        let env = on(0);
        Rig { mm, env, dir, bios: VecDeque::new(), effects: Vec::new() }
    }

    pub(crate) fn at(&mut self, now: Nanos) {
        assert!(now >= self.env.now);
        self.env.now = now;
    }

    /// A new open file.
    pub(crate) fn create(&mut self) -> FileId {
        let file = self.mm.vfs_create(&self.env, self.dir).expect("memory is plentiful").file;
        self.collect();
        file
    }

    /// An open file of so many pages, on disk and not in memory.
    pub(crate) fn on_disk(&mut self, pages: u32) -> FileId {
        let file = self.mm.vfs_populate(self.dir, pages);
        while let Err(need) = self.mm.vfs_open(&self.env, file) {
            assert!(matches!(need, Need::Read(_)), "{need:?}");
        }
        self.collect();
        file
    }

    /// Sorts the effects so far.
    pub(crate) fn collect(&mut self) {
        let mut pending = Vec::new();
        self.mm.effects.take_into(&mut pending);
        for effect in pending {
            match effect {
                Effect::Submit(bio) => self.bios.push_back(bio),
                other => self.effects.push(other),
            }
        }
    }

    /// Completes the oldest bio.
    pub(crate) fn complete_one(&mut self) -> bool {
        let Some(bio) = self.bios.pop_front() else { return false };
        self.mm.end_bio(&self.env, &bio, true);
        self.end_io();
        self.collect();
        true
    }

    /// XFS's worker does what it has to.
    pub(crate) fn end_io(&mut self) {
        while self.mm.end_io_step(&self.env) == EndIoStep::Done {}
    }

    pub(crate) fn complete_all(&mut self) {
        while self.complete_one() {}
    }

    pub(crate) fn write(&mut self, file: FileId, index: u32) -> bool {
        self.try_write(file, index).expect("there is room")
    }

    /// Writes a page, which is dirty then, and says whether it was clean; `None` if the device has no room for it.
    pub(crate) fn try_write(&mut self, file: FileId, index: u32) -> Option<bool> {
        let (written, dirtied) = self.try_write_many(file, index, 1)?;
        assert_eq!(written, 1);
        Some(dirtied > 0)
    }

    /// Writes the first of so many pages, with those that are in one folio with it: how many those are, and how many became dirty.
    pub(crate) fn try_write_many(&mut self, file: FileId, index: u32, request: u32) -> Option<(u32, u32)> {
        let mut write = PageWrite::new(file, index, request);
        loop {
            match self.mm.write_page(&self.env, &mut write) {
                WriteStop::Done { written, dirtied } => {
                    self.collect();
                    return Some((written, dirtied));
                }
                WriteStop::Need(Need::Space) => {
                    self.mm.free_hand(&self.env, &mut write.hand);
                    self.collect();
                    return None;
                }
                WriteStop::Wait(_) => {
                    self.collect();
                    assert!(self.complete_one());
                }
                WriteStop::Need(Need::Page(req)) => {
                    // The slow path does not spread dirty pages.
                    let req = AllocRequest { gfp: req.gfp.without(Gfp::WRITE), ..req };
                    write.hand = self.mm.alloc_pages(&self.env, req);
                    assert!(write.hand.is_some() || req.gfp.contains(Gfp::NORETRY), "memory is plentiful");
                }
                WriteStop::Need(need) => panic!("{need:?}"),
            }
        }
    }

    /// Reads a page, of which it wants `request` from here; says whether it had to wait.
    pub(crate) fn read(&mut self, file: FileId, index: u32, request: u32, ra: &mut Readahead) -> bool {
        let mut waited = false;
        loop {
            match self.mm.read_page(&self.env, file, index, request, ra, &mut None) {
                ReadStop::Done => {
                    self.collect();
                    return waited;
                }
                ReadStop::Wait(pfn) => {
                    self.collect();
                    while self.mm.frames[pfn].has(Frame::LOCKED) {
                        assert!(self.complete_one());
                    }
                    waited = true;
                }
                stop @ (ReadStop::Need(_) | ReadStop::Submit) => panic!("{stop:?}"),
            }
        }
    }

    pub(crate) fn page(&self, file: FileId, index: u32) -> Pfn {
        match self.mm.pagecache_get(file, index) {
            Slot::Page(pfn) => pfn,
            slot => panic!("page {index} of {file:?} is {slot:?}"),
        }
    }

    /// Evicts a clean page as reclaim does.
    pub(crate) fn evict(&mut self, file: FileId, index: u32) {
        let pfn = self.page(file, index);
        self.mm.lru_del(pfn);
        let shadow = self.mm.workingset_eviction(pfn);
        self.mm.pagecache_remove(&self.env, pfn, Some(shadow));
        self.mm.free_pages(&self.env, pfn, self.mm.frames[pfn].order());
    }

    /// Submits everything that is dirty of a file.
    pub(crate) fn write_back(&mut self, file: FileId) {
        self.mm.write_dirty_pages(&self.env, file, 0, u32::MAX);
        self.collect();
        self.end_io();
    }

    pub(crate) fn objects(&self, cache: &str) -> u64 {
        self.mm.slabs.slabinfo().find(|i| i.name == cache).expect("a cache").active_objs
    }

    pub(crate) fn check(&self) {
        let mut violations = Vec::new();
        self.mm.validate_pagecache(&mut violations);
        self.mm.validate_writeback(&mut violations);
        self.mm.validate_zone(&mut violations);
        self.mm.validate_slab(&mut violations);
        self.mm.validate_vfs(&mut violations);
        self.mm.validate_reclaim(&mut violations);
        assert!(violations.is_empty(), "{violations:?}");
    }
}
