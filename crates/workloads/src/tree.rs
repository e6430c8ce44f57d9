//! A kernel source tree on disk.
//!
//! Source: sizes are those of linux-3.19 (48 435 files; `git ls-tree -r -l`), a file each 5 % of them; linux-3.0 has
//! 36 788 files in 2 300 directories.
//! Abstracted: which file has which size is spread evenly. All directories of a tree lie in one. `rm -rf` tries the
//! names that there may be and reads no directory; it removes the files of each and then that, in the order of `fts_read()`.

use sys::{Dir, FileName, OpenMode, Sys};
use units::{Bytes, Nanos, PAGE_SIZE};

/// Sizes in bytes of the files at 2.5 %, 7.5 %, ... 97.5 % of all, sorted by size.
const SIZES: [u32; 20] = [
    110, 340, 600, 890, 1_220, 1_590, 1_990, 2_480, 3_050, 3_720, 4_520, 5_490, 6_690, 8_200, 10_180, 12_830, 16_600,
    22_500, 34_000, 92_000,
];
/// Files in a directory.
pub(crate) const FILES_PER_DIR: u32 = 16;
/// CPU time for unpacking one file: 5 s of `gzip -d` for linux-3.0.
pub(crate) const UNPACK: Nanos = Nanos::micros(135);
/// Names of the files that a build makes come after those of the sources.
const OBJECTS: u64 = FILES_PER_DIR as u64;
/// Name of the archive of a directory: after two made of each source.
const ARCHIVE: u64 = 3 * OBJECTS;
/// Name of the image in the first directory.
const IMAGE: u64 = ARCHIVE + 1;

/// One tree.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// What they lie in.
    top: Dir,
    dirs: Vec<Dir>,
    files: u32,
}

impl Tree {
    pub(crate) async fn new<S: Sys>(sys: &S, name: &str, files: u32) -> sys::Result<Tree> {
        let top = sys.mkdir(name).await?;
        let mut dirs = Vec::new();
        for number in 0..files.div_ceil(FILES_PER_DIR) {
            dirs.push(sys.mkdir(&format!("{name}/{number}")).await?);
        }
        Ok(Tree { top, dirs, files })
    }

    /// One that no world has.
    #[cfg(test)]
    pub(crate) fn of_files(files: u32) -> Tree {
        let dirs = files.div_ceil(FILES_PER_DIR);
        Tree { top: Dir(dirs), dirs: (0..dirs).map(Dir).collect(), files }
    }

    /// Number of source files.
    pub(crate) fn len(&self) -> u32 {
        self.files
    }

    pub(crate) fn source(&self, file: u32) -> FileName {
        FileName { dir: self.dirs[(file / FILES_PER_DIR) as usize], number: u64::from(file % FILES_PER_DIR) }
    }

    /// What compiling a source file makes: 0 the object, 1 its dependencies.
    pub(crate) fn object(&self, file: u32, what: u64) -> FileName {
        let FileName { dir, number } = self.source(file);
        FileName { dir, number: OBJECTS + 2 * number + what }
    }

    /// What the objects of a source file's directory are put into.
    pub(crate) fn archive(&self, file: u32) -> FileName {
        FileName { number: ARCHIVE, ..self.source(file) }
    }

    /// What all of them are linked to.
    pub(crate) fn image(&self) -> FileName {
        FileName { dir: self.dirs[0], number: IMAGE }
    }

    pub(crate) fn size(&self, file: u32) -> Bytes {
        size_of(file)
    }

    /// Writes one file.
    pub(crate) async fn write<S: Sys>(&self, sys: &S, file: u32) -> sys::Result<()> {
        write_file(sys, self.source(file), self.size(file)).await
    }

    /// Decompresses and writes all files, as one process.
    pub(crate) async fn unpack<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        for file in 0..self.files {
            sys.compute(UNPACK).await;
            self.write(sys, file).await?;
        }
        Ok(())
    }

    /// Copies another tree file by file (`cp -r`).
    pub(crate) async fn copy_of<S: Sys>(&self, sys: &S, from: &Tree) -> sys::Result<()> {
        for file in 0..self.files {
            read_file(sys, from.source(file), from.size(file)).await?;
            self.write(sys, file).await?;
        }
        Ok(())
    }

    /// Removes all files, also those that a build made, and all directories (`rm -rf`).
    pub(crate) async fn remove<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        for (number, dir) in (0..).zip(&self.dirs) {
            for name in self.names_in(number) {
                remove_file(sys, name).await?;
            }
            sys.rmdir(*dir).await?;
        }
        sys.rmdir(self.top).await
    }

    /// Removes all files that a build made (`make clean`).
    pub(crate) async fn clean<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        for number in 0..self.dirs.len() as u32 {
            for name in self.names_in(number).filter(|name| name.number >= OBJECTS) {
                remove_file(sys, name).await?;
            }
        }
        Ok(())
    }

    /// All files that there may be in a directory.
    fn names_in(&self, dir: u32) -> impl Iterator<Item = FileName> {
        let first = dir * FILES_PER_DIR;
        let sources = first..self.files.min(first + FILES_PER_DIR);
        let made = sources.flat_map(|file| [self.source(file), self.object(file, 0), self.object(file, 1)]);
        made.chain([self.archive(first)]).chain((dir == 0).then(|| self.image()))
    }
}

/// Removes a file, if there is one.
async fn remove_file<S: Sys>(sys: &S, name: FileName) -> sys::Result<()> {
    match sys.unlink(name).await {
        Err(sys::SysError::NoEntry) => Ok(()),
        result => result,
    }
}

/// Size of a file of a tree.
pub(crate) fn size_of(file: u32) -> Bytes {
    // A step that shares no divisor with the table spreads the sizes over directories.
    Bytes(u64::from(SIZES[(u64::from(file) * 7 % SIZES.len() as u64) as usize]))
}

/// Reads a whole file.
pub(crate) async fn read_file<S: Sys>(sys: &S, name: FileName, size: Bytes) -> sys::Result<()> {
    let fd = sys.open(name, OpenMode::Existing).await?;
    sys.read(fd, Bytes(0), size).await?;
    sys.close(fd).await
}

/// Creates or overwrites a whole file.
pub(crate) async fn write_file<S: Sys>(sys: &S, name: FileName, size: Bytes) -> sys::Result<()> {
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.write(fd, Bytes(0), Bytes(size.0.next_multiple_of(PAGE_SIZE))).await?;
    sys.close(fd).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_a_kernel_tree() {
        let tree = Tree::of_files(36_788);
        let sizes: Vec<u64> = (0..tree.len()).map(|file| tree.size(file).0).collect();
        let mean = sizes.iter().sum::<u64>() / sizes.len() as u64;
        // 545.6 MB in 48 435 files are 11 265 B each.
        assert!((10_700..11_800).contains(&mean), "{mean}");
        let pages: u64 = sizes.iter().map(|size| size.div_ceil(PAGE_SIZE)).sum();
        // 3.33 pages a file.
        assert!((118_000..128_000).contains(&pages), "{pages}");
        let small = sizes.iter().filter(|size| **size <= PAGE_SIZE).count();
        assert_eq!(small * 20 / sizes.len(), 10, "half of the files fit a page");
    }

    #[test]
    fn no_two_files_have_one_name_and_each_is_removed_with_its_directory() {
        let tree = Tree::of_files(1023);
        let all = (0..1023).flat_map(|file| [tree.source(file), tree.object(file, 0), tree.object(file, 1)]);
        let archives = (0..64).map(|dir| tree.archive(dir * FILES_PER_DIR));
        let place = |name: FileName| (name.dir.0, name.number);
        let mut names: Vec<(u32, u64)> = all.chain(archives).chain([tree.image()]).map(place).collect();
        names.sort_unstable();
        let mut once = names.clone();
        once.dedup();
        assert_eq!(once, names);
        let mut removed: Vec<(u32, u64)> = (0..64).flat_map(|dir| tree.names_in(dir)).map(place).collect();
        assert!(removed.is_sorted_by_key(|(dir, _)| *dir), "one directory after the other");
        removed.sort_unstable();
        assert_eq!(removed, names);
    }
}
