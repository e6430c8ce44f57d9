//! What files that were made one after the other have alike, or nearly: a few bits a file instead of 20 bytes.

use units::FileId;

use super::{DirId, NONE};
use crate::column::Column;

/// What a file has from its creation on; only its size changes often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attributes {
    pub(super) parent: DirId,
    /// Place of its name in the parent.
    pub(super) dirent: u32,
    /// Inode number, or [`NONE`].
    pub(super) ino: u32,
    /// Pages of the file; of a directory: its `DirId`.
    pub(super) size: u32,
    /// Length of its first extent, which begins at page 0.
    pub(super) blocks: u32,
}

impl Attributes {
    /// Of what is in a directory and has neither an inode on disk nor pages and blocks.
    pub(super) fn below(parent: DirId) -> Attributes {
        Attributes { parent, dirent: 0, ino: NONE, size: 0, blocks: 0 }
    }
}

/// The attributes of all files.
#[derive(Debug, Default)]
pub(super) struct AttributeTable {
    parents: Column,
    dirents: Column,
    inos: Column,
    sizes: Column,
    /// Of XFS's: pages that the size on disk covers.
    disk_sizes: Column,
    blocks: Column,
    /// Of files that have blocks.
    first_blocks: Column,
}

impl AttributeTable {
    /// Sets all attributes of a file.
    pub(super) fn set(&mut self, file: FileId, Attributes { parent, dirent, ino, size, blocks }: Attributes) {
        self.parents.set(file.0, parent.0);
        self.dirents.set(file.0, dirent);
        self.set_ino(file, ino);
        self.set_size(file, size);
        self.set_disk_size(file, size);
        self.set_blocks(file, blocks);
    }

    #[inline]
    pub(super) fn parent(&self, file: FileId) -> DirId {
        DirId(self.parents.get(file.0))
    }

    pub(super) fn dirent(&self, file: FileId) -> u32 {
        self.dirents.get(file.0)
    }

    #[inline]
    pub(super) fn ino(&self, file: FileId) -> u32 {
        self.inos.get(file.0)
    }

    pub(super) fn set_ino(&mut self, file: FileId, ino: u32) {
        self.inos.set(file.0, ino);
    }

    #[inline]
    pub(super) fn size(&self, file: FileId) -> u32 {
        self.sizes.get(file.0)
    }

    pub(super) fn set_size(&mut self, file: FileId, size: u32) {
        self.sizes.set(file.0, size);
    }

    pub(super) fn disk_size(&self, file: FileId) -> u32 {
        self.disk_sizes.get(file.0)
    }

    pub(super) fn set_disk_size(&mut self, file: FileId, size: u32) {
        self.disk_sizes.set(file.0, size);
    }

    #[inline]
    pub(super) fn blocks(&self, file: FileId) -> u32 {
        self.blocks.get(file.0)
    }

    pub(super) fn set_blocks(&mut self, file: FileId, blocks: u32) {
        self.blocks.set(file.0, blocks);
    }

    /// First block of the first extent, of a file that has one.
    #[inline]
    pub(super) fn first_block(&self, file: FileId) -> u32 {
        self.first_blocks.get(file.0)
    }

    pub(super) fn set_first_block(&mut self, file: FileId, block: u32) {
        self.first_blocks.set(file.0, block);
    }

    pub(super) fn host_bytes(&self) -> usize {
        let Self { parents, dirents, inos, sizes, disk_sizes, blocks, first_blocks } = self;
        [parents, dirents, inos, sizes, disk_sizes, blocks, first_blocks].map(Column::host_bytes).iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_four_writers_make_in_turn_take_four_bytes() {
        let mut table = AttributeTable::default();
        let of = |n: u32| {
            let (writer, number) = (n % 4, n / 4);
            Attributes {
                parent: DirId(2 + writer),
                dirent: number,
                ino: 500 * writer + number,
                size: 16,
                blocks: 2 + n % 3,
            }
        };
        (0..64 * 64).for_each(|n| table.set(FileId(n), of(n)));
        for n in 0..64 * 64 {
            let Attributes { parent, dirent, ino, size, blocks } = of(n);
            let file = FileId(n);
            let found = (table.parent(file), table.dirent(file), table.ino(file), table.size(file), table.blocks(file));
            assert_eq!(found, (parent, dirent, ino, size, blocks));
        }
        // 2 bits for one of 4 directories, 4 for the name among 16, 16 for the inode, none for the length, 2 for the extent: 3 bytes; 8
        // bytes for 64 files and 32 for 64 times as many in each of the 5 tables: not one more.
        assert!(table.host_bytes() < 64 * 64 * 4, "{} bytes", table.host_bytes());
    }
}
