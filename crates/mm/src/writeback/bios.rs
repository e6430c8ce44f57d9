//! Memory of the bios that carry pages of files to a device.
//!
//! Rule: each has a bio with as many vectors as it may come to hold ([`BioRoom`]), whatever it carries in the end, from its submission to its end; ext4
//! keeps an `ext4_io_end` beside it. Blocks of a device and pages of an ext3 go by their buffers, whose bios have their vector inside. Where
//! the memory is from: bio_pool.rs. A bio that has ended when its submission returns takes no more than a place for a moment; one that a limit in
//! front of a copying device holds back keeps what it has, so that thousands of small files under writeback take MiB of
//! kernel memory: guests of 3.19 have 2400 pages of slabs for 13663 pages under writeback. So does one that waits for a worker after its
//! end (end_io.rs).
//! Source: `io_submit_init_bio()`, `ext4_init_io_end()` (fs/ext4/page-io.c), `xfs_alloc_ioend_bio()` (fs/xfs/xfs_aops.c), `bio_get_nr_vecs()`,
//! `bvec_alloc()`, `BIO_INLINE_VECS` (block/bio.c), `submit_bh()` (fs/buffer.c), 3.19; 4.20. `ext3_ordered_writepage()` (fs/ext3/inode.c),
//! `block_write_full_page()`, `journal_do_submit_data()` (fs/jbd/commit.c), 2.6.39.
//! Since/until: [`BioRoom`].
//! Abstracted: a bio is allocated as it is submitted, not as it is begun; buffers that lie side by side share one, and the bios
//! of an inode's slice have an `ext4_io_end` each; what waits for the worker gives its memory back and takes it again.
//! Omitted: bios of reads.

use rules::{BioRoom, IoendEnd};
use units::{FileId, Gfp, PAGEBLOCK_PAGES};

use crate::bio_pool::{BioPart, Reserve};
use crate::effects::BioParts;
use crate::slab::CacheId;
use crate::vfs::FsKind;
use crate::{Bio, BioMemory, BioTarget, Env, Mm};

/// Bytes of a vector (`struct bio_vec`).
pub(crate) const BIO_VECTOR_BYTES: u32 = 16;

/// What a device takes in one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestLimits {
    /// Pages.
    pub pages: u32,
    /// Segments (`queue_max_segments()`).
    pub segments: u32,
    /// Pages of a RAID's chunk, whose end is that of a bio until md cuts it itself (`raid0_mergeable_bvec()`, until 4.2).
    pub chunk: Option<u32>,
}

impl RequestLimits {
    /// Behind AHCI: 512 KiB (`BLK_DEF_MAX_SECTORS` until 4.2) and `AHCI_MAX_SG`.
    pub const SATA: RequestLimits = RequestLimits { pages: 128, segments: 168, chunk: None };
    /// A RAM disk: the defaults of a queue.
    pub const RAM: RequestLimits = RequestLimits { pages: 128, segments: 128, chunk: None };
    /// usb-storage: 240 sectors.
    pub const USB: RequestLimits = RequestLimits { pages: 30, segments: 128, chunk: None };

    /// A RAID-0 of such devices, all alike, with chunks of so many pages (`raid0_run()`).
    #[must_use]
    pub fn striped(self, chunk: u32) -> RequestLimits {
        RequestLimits { pages: self.pages.min(chunk), chunk: Some(chunk), ..self }
    }
}

/// The cache that so many vectors come from (`bvec_slabs`); none for those inside the bio.
fn vectors_cache(vectors: u32) -> Option<CacheId> {
    match vectors {
        0..=4 => None,
        5..=16 => Some(CacheId::BIOVEC_16),
        17..=64 => Some(CacheId::BIOVEC_64),
        65..=128 => Some(CacheId::BIOVEC_128),
        _ => Some(CacheId::BIOVEC_MAX),
    }
}

impl Mm {
    /// Says what a device takes in one request; SATA's limits are taken for one of which nothing was said.
    pub fn set_request_limits(&mut self, device: u16, limits: RequestLimits) {
        let index = usize::from(device);
        if self.writeback.request_limits.len() <= index {
            self.writeback.request_limits.resize(index + 1, RequestLimits::SATA);
        }
        self.writeback.request_limits[index] = limits;
    }

    fn request_limits(&self, device: u16) -> RequestLimits {
        self.writeback.request_limits.get(usize::from(device)).copied().unwrap_or(RequestLimits::SATA)
    }

    /// Most vectors of a bio (`BIO_MAX_PAGES`, `BIO_MAX_VECS`).
    pub(crate) fn bio_vectors_max(&self) -> u32 {
        match self.rules.bio_room {
            BioRoom::Request | BioRoom::RequestAndOne | BioRoom::Most => 256,
            BioRoom::HugePage => PAGEBLOCK_PAGES,
        }
    }

    /// Vectors that a bio of a device is allocated with.
    fn bio_vectors(&self, device: u16) -> u32 {
        let limits = self.request_limits(device);
        match self.rules.bio_room {
            BioRoom::Request => limits.segments.min(limits.pages),
            BioRoom::RequestAndOne => limits.segments.min(limits.pages + 1),
            BioRoom::Most | BioRoom::HugePage => self.bio_vectors_max(),
        }
    }

    /// Most pages of a bio whose vectors hold a page each.
    pub(super) fn bio_pages_max(&self, device: u16) -> u32 {
        self.bio_vectors(device).min(match self.rules.bio_room {
            BioRoom::Request | BioRoom::RequestAndOne => self.request_limits(device).pages,
            BioRoom::Most | BioRoom::HugePage => self.bio_vectors_max(),
        })
    }

    /// Whether a bio ends where a chunk of its device does, and takes no more.
    pub(super) fn ends_chunk(&self, bio: &Bio) -> bool {
        let meets = matches!(self.rules.bio_room, BioRoom::Request | BioRoom::RequestAndOne);
        let end = bio.sector / 8 + u64::from(bio.pages);
        meets && self.request_limits(bio.device).chunk.is_some_and(|chunk| end.is_multiple_of(u64::from(chunk)))
    }

    /// Gives a bio that does not end as it is submitted its memory, if it carries pages of a file to the device.
    pub(crate) fn alloc_bio(&mut self, env: &Env, bio: Bio) -> Bio {
        match bio.target {
            BioTarget::File { file, .. } if bio.write => {
                let parts = self.alloc_bio_parts(env, file, bio.device);
                Bio { memory: BioMemory { parts, ..bio.memory }, ..bio }
            }
            _ => bio,
        }
    }

    /// The memory of a bio that carries pages of a file to a device.
    fn alloc_bio_parts(&mut self, env: &Env, file: FileId, device: u16) -> BioParts {
        let by_buffer = self.bdev_gfp(file).is_some() || self.vfs.spec_of(file).block_mapped;
        let (own_set, xfs) = (self.rules.ioend_end == IoendEnd::EachBio, self.fs_kind(file) == FsKind::Xfs);
        let bio = if xfs { (CacheId::XFS_IOEND, Reserve::Ioend) } else { (CacheId::BIO, Reserve::Bio) };
        let reserve = if xfs && own_set { Reserve::IoendVectors } else { Reserve::Vectors };
        let cache = if by_buffer { None } else { vectors_cache(self.bio_vectors(device)) };
        let vectors = cache.map(|cache| (cache, reserve));
        let [bio, vectors] = [Some(bio), vectors]
            .map(|part| part.map_or(BioPart::Nothing, |(cache, reserve)| self.alloc_bio_part(env, cache, reserve)));
        let beside = if xfs || by_buffer { BioPart::Nothing } else { self.alloc_io_end(env) };
        [bio, vectors, beside]
    }

    /// What ext4 keeps beside a bio, if there is memory for it.
    fn alloc_io_end(&mut self, env: &Env) -> BioPart {
        let obj = self.slab_alloc_nowait(env, CacheId::EXT4_IO_END, Gfp::NOFS);
        if obj.is_some() { BioPart::Slab(CacheId::EXT4_IO_END, obj, None) } else { BioPart::Nothing }
    }

    /// What a write to a device still holds of its bio when that has ended, but not it: where the bio is part of the ioend, all of it.
    pub(super) fn alloc_ended_bio(&mut self, env: &Env, file: FileId, device: u16) -> BioParts {
        match self.rules.ioend_end {
            IoendEnd::EachBio => self.alloc_bio_parts(env, file, device),
            IoendEnd::LastBio => BioMemory::NONE.parts,
        }
    }

    /// A bio is done with; the file whose data it carried may be gone by now.
    pub(crate) fn free_bio(&mut self, env: &Env, parts: &BioParts) {
        parts.iter().for_each(|part| self.free_bio_part(env, *part));
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;
    use units::{FileId, Nanos};

    use super::*;
    use crate::copy_device::{BioEnd, CopyCosts, CopyRoom};
    use crate::pagecache::rig::Rig;

    const DEVICE: u16 = 3;

    /// Objects that a bio holds, by cache.
    fn held(bio: &Bio) -> Vec<CacheId> {
        let cache = |part: &BioPart| if let BioPart::Slab(cache, ..) = part { Some(*cache) } else { None };
        bio.memory.parts.iter().filter_map(cache).collect()
    }

    fn ext4(room: BioRoom) -> Rig {
        Rig::ext4_with(1 << 14, Rules { bio_room: room, bio_vectors: rules::BioVectors::Pages, ..Rules::newest() })
    }

    fn dirty_file(rig: &mut Rig, pages: u32) -> FileId {
        let file = rig.create();
        (0..pages).for_each(|index| assert!(rig.write(file, index)));
        file
    }

    #[test]
    fn a_bio_has_room_for_a_request_of_its_device_or_for_the_most() {
        for (limits, room, vectors, pages) in [
            (RequestLimits::SATA, BioRoom::Request, 128, 128),
            (RequestLimits::SATA, BioRoom::RequestAndOne, 129, 128),
            (RequestLimits::RAM, BioRoom::RequestAndOne, 128, 128),
            (RequestLimits::USB, BioRoom::RequestAndOne, 31, 30),
            (RequestLimits::SATA.striped(16), BioRoom::Request, 16, 16),
            (RequestLimits::USB.striped(128), BioRoom::Request, 30, 30),
            (RequestLimits::USB, BioRoom::Most, 256, 256),
            (RequestLimits::USB, BioRoom::HugePage, 512, 512),
        ] {
            let mut rig = ext4(room);
            rig.mm.set_request_limits(DEVICE, limits);
            assert_eq!((rig.mm.bio_vectors(DEVICE), rig.mm.bio_pages_max(DEVICE)), (vectors, pages));
            let of_unknown = match room {
                BioRoom::Request => 128,
                BioRoom::RequestAndOne => 129,
                BioRoom::Most | BioRoom::HugePage => vectors,
            };
            assert_eq!(rig.mm.bio_vectors(0), of_unknown, "as if behind AHCI");
            // 16 bytes each, in the largest cache at least 256.
            let largest = rig.mm.slabs.object_size(CacheId::BIOVEC_MAX);
            assert_eq!(largest, if room == BioRoom::HugePage { 8192 } else { 4096 });
        }
        let caches = [4, 5, 16, 17, 31, 64, 65, 128, 129, 256].map(vectors_cache);
        assert_eq!(caches[0], None, "inside the bio");
        assert!(caches[1..3].iter().all(|cache| *cache == Some(CacheId::BIOVEC_16)));
        assert!(caches[3..6].iter().all(|cache| *cache == Some(CacheId::BIOVEC_64)));
        assert!(caches[6..8].iter().all(|cache| *cache == Some(CacheId::BIOVEC_128)));
        assert!(caches[8..].iter().all(|cache| *cache == Some(CacheId::BIOVEC_MAX)));
    }

    #[test]
    fn a_bio_that_a_limit_holds_back_keeps_its_memory_until_it_ends() {
        let mut rig = ext4(BioRoom::RequestAndOne);
        let costs = CopyCosts { bio: Nanos(1_000), read: Nanos(500), write: Nanos(500) };
        rig.mm.set_bio_end(DEVICE, BioEnd::Copy(costs));
        rig.mm.set_request_limits(DEVICE, RequestLimits::RAM);
        let [passes, short, long] = [8, 1, 200].map(|pages| dirty_file(&mut rig, pages));
        rig.mm.set_copy_room(DEVICE, CopyRoom { write: 8, ..CopyRoom::default() });
        rig.write_back(passes);
        let slabs = |rig: &Rig| ["bio-0", "ext4_io_end", "biovec-128"].map(|cache| rig.objects(cache));
        assert_eq!((rig.bios.len(), slabs(&rig)), (0, [0; 3]), "it ended as it was submitted");
        for file in [short, long] {
            rig.write_back(file);
        }
        // 200 pages are two bios of at most 128.
        assert_eq!(rig.bios.iter().map(|bio| bio.pages).collect::<Vec<_>>(), [1, 128, 72]);
        for bio in &rig.bios {
            assert_eq!(held(bio), [CacheId::BIO, CacheId::BIOVEC_128, CacheId::EXT4_IO_END]);
        }
        assert!(slabs(&rig).iter().all(|objects| *objects > 0));
        rig.complete_all();
        assert!(rig.bios.is_empty());
        rig.check();
    }

    #[test]
    fn a_bio_ends_with_the_chunk_of_a_raid_until_md_cuts_it() {
        for (room, whole) in [(BioRoom::Request, false), (BioRoom::Most, true)] {
            let mut rig = ext4(room);
            rig.mm.set_request_limits(DEVICE, RequestLimits::SATA.striped(16));
            let file = dirty_file(&mut rig, 40);
            rig.write_back(file);
            let sector = rig.bios[0].sector;
            // The first ends with its chunk, wherever in that it begins.
            let first = 16 - (sector / 8 % 16) as u32;
            let expected = if whole { vec![40] } else { cut(40, first) };
            assert_eq!(rig.bios.iter().map(|bio| bio.pages).collect::<Vec<_>>(), expected);
            rig.complete_all();
        }
    }

    /// So many pages in chunks of 16, of which the first has `first` left.
    fn cut(pages: u32, first: u32) -> Vec<u32> {
        let mut cuts = vec![first];
        while cuts.iter().sum::<u32>() < pages {
            cuts.push((pages - cuts.iter().sum::<u32>()).min(16));
        }
        cuts
    }

    #[test]
    fn a_page_of_an_ext3_goes_by_its_buffer() {
        let mut rig = Rig::ext3(1 << 14);
        let file = dirty_file(&mut rig, 8);
        rig.write_back(file);
        assert_eq!(
            (rig.bios[0].pages, held(&rig.bios[0])),
            (8, vec![CacheId::BIO]),
            "no vectors of order 3, no io_end"
        );
        rig.complete_all();
        rig.check();
    }

    #[test]
    fn a_block_of_a_device_goes_by_its_buffer() {
        let mut rig = ext4(BioRoom::Most);
        let file = dirty_file(&mut rig, 1);
        rig.write_back(file);
        let of_file = rig.bios[0];
        assert_eq!(held(&of_file), [CacheId::BIO, CacheId::BIOVEC_MAX, CacheId::EXT4_IO_END]);
        let bdev = (0..8).map(FileId).find(|file| rig.mm.bdev_gfp(*file).is_some()).expect("an ext4 has one");
        let bio =
            Bio { target: BioTarget::File { file: bdev, index: 7 }, pages: 1, memory: BioMemory::NONE, ..of_file };
        let bio = rig.mm.alloc_bio(&rig.env, bio);
        assert_eq!(held(&bio), [CacheId::BIO], "its vector is inside it");
        rig.mm.free_bio(&rig.env, &bio.memory.parts);
        rig.complete_all();
        rig.check();
    }
}
