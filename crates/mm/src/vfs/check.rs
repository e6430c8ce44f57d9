//! Whole-structure check of files, dentries, inodes and buffers.

use units::{FileId, Order};

use super::{FileRec, Vfs};
use crate::{Frame, Kind, Mm, Violation};

fn violation(what: String) -> Violation {
    Violation { place: "vfs", pfn: None, what }
}

impl Mm {
    /// Recounts what is in memory, and checks that each is on the list its flags say.
    pub(crate) fn validate_vfs(&self, violations: &mut Vec<Violation>) {
        let (mut dentries, mut inodes) = (0, 0);
        let mut children = vec![0u32; self.vfs.dirs.len()];
        for (n, rec) in self.vfs.files.iter().enumerate() {
            dentries += u64::from(rec.dentry.is_some());
            inodes += u64::from(rec.inode.is_some());
            if rec.dentry.is_some() {
                children[self.vfs.attributes.parent(FileId(n as u32)).0 as usize] += 1;
            }
            self.check_file(n, rec, violations);
        }
        if self.vfs.cached() != (dentries, inodes) {
            let what = format!("dentries, inodes {:?}, recounted {dentries}, {inodes}", self.vfs.cached());
            violations.push(violation(what));
        }
        self.check_statuses(violations);
        for (n, dir) in self.vfs.dirs.iter().enumerate().filter(|(n, dir)| dir.children != children[*n]) {
            violations.push(violation(format!("directory {n} has {} children, not {}", children[n], dir.children)));
        }
        self.check_gone(violations);
        self.check_lrus(violations);
        self.check_buffers(violations);
        self.check_space(violations);
        self.check_cil(violations);
        self.check_journals(violations);
    }

    /// The pages of a device that are kept are those of blocks that its journal keeps, and so are those that its log waits for.
    fn check_journals(&self, violations: &mut Vec<Violation>) {
        for (n, fs) in self.vfs.fs.iter().enumerate() {
            let Some(bdev) = fs.bdev else { continue };
            violations
                .extend(fs.journal.check_log().into_iter().map(|what| violation(format!("file system {n}: {what}"))));
            let pinned =
                |block: u32| self.block_page(bdev, block).is_some_and(|pfn| self.frames[pfn].has(Frame::PINNED));
            let mut from = Some(0);
            while let Some((block, _)) = from.and_then(|from| self.pagecache.trees.next_entry(bdev.0, from)) {
                if pinned(block) && !fs.journal.keeps(block) {
                    violations.push(violation(format!("file system {n}: block {block} is kept by nobody")));
                }
                from = block.checked_add(1);
            }
            for block in fs.journal.kept().filter(|block| !pinned(*block)) {
                if self.block_page(bdev, block).is_some() {
                    violations.push(violation(format!("file system {n}: the journal does not hold block {block}")));
                }
            }
        }
    }

    /// Each inode of a checkpoint is in it once, and says so.
    fn check_cil(&self, violations: &mut Vec<Violation>) {
        let mut listed: Vec<u32> = self.vfs.fs.iter().flat_map(|fs| fs.cil.files()).map(|file| file.0).collect();
        listed.sort_unstable();
        let flagged = (0..self.vfs.files.len() as u32).filter(|n| self.vfs.files[*n as usize].has(FileRec::IN_CIL));
        if !flagged.eq(listed.iter().copied()) {
            violations.push(violation(format!("{} inodes in checkpoints are not those that say so", listed.len())));
        }
        for fs in 0..self.vfs.fs.len() {
            let (said, found) = self.vfs.checkpoint_bytes(super::FsId(fs as u8));
            if said != found {
                violations.push(violation(format!("a checkpoint's inodes take {said} bytes, recounted {found}")));
            }
        }
    }

    /// Blocks in use are the files', the directories' and the chunks'; those claimed are dirty pages without one.
    fn check_space(&self, violations: &mut Vec<Violation>) {
        let metadata = |fs: &super::disk::Fs| fs.chunk_blocks() + fs.leaves.len() as u64;
        let mut used: Vec<u64> = self.vfs.fs.iter().map(metadata).collect();
        let mut claimed = vec![0; used.len()];
        for dir in &self.vfs.dirs {
            used[dir.fs.0 as usize] += dir.blocks.len() as u64;
        }
        for (n, rec) in self.vfs.files.iter().enumerate() {
            let file = FileId(n as u32);
            if !rec.has(FileRec::LIVE) || rec.has(FileRec::DIR | FileRec::NEGATIVE | FileRec::BDEV) {
                continue;
            }
            let fs = self.vfs.fs_of(file).0 as usize;
            let blocks = self.vfs.attributes.blocks(file);
            used[fs] += u64::from(blocks) + self.vfs.extents.blocks(rec.more, blocks);
            let mut from = Some(0);
            while let Some(dirty) = from.and_then(|from| self.pagecache.trees.next_dirty(file.0, from)) {
                claimed[fs] += u64::from(self.vfs.find_extent(file, dirty).is_none());
                from = dirty.checked_add(1);
            }
        }
        for (n, fs) in self.vfs.fs.iter().enumerate() {
            let found = (fs.space.total() - used[n], claimed[n]);
            if (fs.space.free(), fs.space.claimed()) != found {
                let said = (fs.space.free(), fs.space.claimed());
                violations
                    .push(violation(format!("file system {n}: blocks free, claimed {said:?}, recounted {found:?}")));
            }
        }
    }

    fn check_file(&self, n: usize, rec: &FileRec, violations: &mut Vec<Violation>) {
        let mut wrong = |what: &str| violations.push(violation(format!("file {n}: {what}: {rec:?}")));
        let live = rec.has(FileRec::LIVE);
        let Vfs { items, shadows, vectors, security, .. } = &self.vfs;
        let [item, shadow, vector, security] = [items, shadows, vectors, security].map(|table| table.get(n as u32));
        if !live && (rec.dentry.is_some() || rec.inode.is_some()) {
            wrong("an unused record has objects");
        }
        if rec.dentry.is_some() && !rec.inode.is_some() && !rec.has(FileRec::UNLINKED | FileRec::NEGATIVE) {
            wrong("a dentry without an inode has a name");
        }
        if rec.has(FileRec::OPEN) && !rec.dentry.is_some() && !rec.has(FileRec::ROOT) {
            wrong("open without a dentry");
        }
        if rec.has(FileRec::INODE_LRU) && rec.has(FileRec::RECLAIMABLE) {
            wrong("on the LRU and reclaimable");
        }
        if rec.has(FileRec::FREEING) {
            wrong("left in eviction");
        }
        let blocks = self.vfs.attributes.blocks(FileId(n as u32));
        if rec.has(FileRec::NEGATIVE) && (rec.inode.is_some() || rec.has(FileRec::OPEN) || blocks > 0) {
            wrong("a name that does not exist has a file");
        }
        if !rec.inode.is_some() && (item.is_some() || rec.extents.is_some() || shadow.is_some() || security.is_some()) {
            wrong("parts of an inode without it");
        }
        if rec.has(FileRec::IN_CIL) != vector.is_some()
            || rec.has(FileRec::VECTOR_LARGE) && !rec.has(FileRec::IN_CIL)
            || rec.has(FileRec::SHADOW_LARGE) && !shadow.is_some()
        {
            wrong("its vectors are not those that its flags name");
        }
        let attributes = &self.vfs.attributes;
        if !rec.has(FileRec::DIR) && attributes.disk_size(FileId(n as u32)) > attributes.size(FileId(n as u32)) {
            wrong("its size on disk is behind its end");
        }
        let listed = rec.has(FileRec::DENTRY_LRU);
        if rec.dentry.is_some() && !listed && !self.dentry_in_use(FileId(n as u32)) {
            wrong("an unused dentry is on no list");
        }
    }

    /// Names that stand for nothing are on the list of their directory, and nothing else is.
    fn check_gone(&self, violations: &mut Vec<Violation>) {
        let mut expected = vec![0; self.vfs.dirs.len()];
        let is_gone = |rec: &FileRec| {
            let removed = rec.has(FileRec::UNLINKED) && !rec.has(FileRec::UNHASHED) && rec.dentry.is_some();
            rec.has(FileRec::LIVE) && (removed || rec.has(FileRec::NEGATIVE))
        };
        for n in (0..self.vfs.files.len()).filter(|n| is_gone(&self.vfs.files[*n])) {
            expected[self.vfs.attributes.parent(FileId(n as u32)).0 as usize] += 1;
        }
        for (n, dir) in self.vfs.dirs.iter().enumerate() {
            let listed =
                dir.gone.iter(&self.vfs.gone_links).filter(|id| is_gone(&self.vfs.files[*id as usize])).count();
            if (listed, dir.gone.len()) != (expected[n], expected[n] as u32) {
                let said = dir.gone.len();
                violations.push(violation(format!(
                    "directory {n}: {said} names stand for nothing, {listed} of them do, {} should",
                    expected[n]
                )));
            }
        }
    }

    fn check_lrus(&self, violations: &mut Vec<Violation>) {
        let flagged = |flag| self.vfs.files.iter().filter(|r| r.has(flag)).count() as u64;
        let (mut dentries, mut inodes) = (0, 0);
        for list in 0..self.vfs.dentry_lru.len() {
            for id in self.vfs.dentry_lru[list].iter(&self.vfs.dentry_links) {
                dentries += 1;
                let rec = &self.vfs.files[id as usize];
                let home = self.dentry_share(FileId(id)).index(self.vfs.nodes);
                if !rec.has(FileRec::DENTRY_LRU) || home != list {
                    violations.push(violation(format!("dentry of file {id} is on list {list}, not {home}: {rec:?}")));
                }
            }
            for id in self.vfs.inode_lru[list].iter(&self.vfs.inode_links) {
                inodes += 1;
                let rec = &self.vfs.files[id as usize];
                if !rec.has(FileRec::INODE_LRU) || !rec.inode.is_some() {
                    violations.push(violation(format!("inode of file {id} is on list {list}: {rec:?}")));
                }
            }
        }
        let reclaimable = self.vfs.reclaimable.map_or(0, |l| l.iter(&self.vfs.inode_links).count() as u64);
        let found = [dentries, inodes, reclaimable];
        let said = [FileRec::DENTRY_LRU, FileRec::INODE_LRU, FileRec::RECLAIMABLE].map(flagged);
        let counted = [self.vfs.unused_dentries(), self.vfs.unused_inodes(), self.vfs.reclaimable_inodes()];
        if found != said || found != counted {
            violations.push(violation(format!("listed {found:?}, flagged {said:?}, counted {counted:?}")));
        }
    }

    fn check_buffers(&self, violations: &mut Vec<Violation>) {
        let listed: usize = self.vfs.buffer_lru.iter().map(|l| l.iter(&self.vfs.buffers).count()).sum();
        let pages = self.vfs.buffers.iter().flat_map(|b| b.pages).chain(self.vfs.spare_pages.iter().copied());
        for pfn in pages.filter(|p| p.is_some()) {
            let frame = &self.frames[pfn];
            if frame.kind() != Kind::Kernel || frame.order() != Order(0) {
                let what = format!("page of a buffer is {:?}", frame.kind());
                violations.push(Violation { place: "vfs", pfn: Some(pfn), what });
            }
        }
        let said = self.vfs.buffers.iter().filter(|buffer| buffer.listed).count();
        if listed != said {
            violations.push(violation(format!("{said} of {} buffers listed, {listed} on LRUs", self.vfs.buffers())));
        }
    }
}
