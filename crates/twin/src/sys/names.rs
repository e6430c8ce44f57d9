//! Which files the names in directories stand for.
//!
//! Files are named by numbers, and files whose names follow each other were mostly made one after the other: all names share one
//! column of near numbers, of which a directory has whole groups.

use mm::column::{Column, GROUP};
use units::FileId;

/// Stands where a name has no file.
const NO_FILE: FileId = FileId(u32::MAX);

/// The names in one directory.
#[derive(Debug, Default)]
pub(crate) struct NamesOf {
    /// Its groups in the table of all names.
    groups: Vec<u32>,
    /// The first number that was never used.
    end: u32,
}

/// All names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    files: Column,
    nr_groups: u32,
    /// Groups of directories that are gone.
    unused_groups: Vec<u32>,
}

impl Names {
    /// What a name was when it was last looked up: a file, or a negative dentry's record.
    pub(super) fn get(&self, of: &NamesOf, number: u32) -> Option<FileId> {
        if number >= of.end {
            return None;
        }
        Some(FileId(self.files.get(place(of, number)))).filter(|file| *file != NO_FILE)
    }

    /// Gives a name to a file, or takes it away.
    pub(super) fn set(&mut self, of: &mut NamesOf, number: u32, file: Option<FileId>) {
        while of.end <= number {
            if of.end.is_multiple_of(GROUP) {
                of.groups.push(self.unused_groups.pop().unwrap_or_else(|| {
                    self.nr_groups += 1;
                    self.nr_groups - 1
                }));
            }
            if of.end < number {
                self.files.set(place(of, of.end), NO_FILE.0);
            }
            of.end += 1;
        }
        self.files.set(place(of, number), file.unwrap_or(NO_FILE).0);
    }

    /// Forgets all names of a directory.
    pub(super) fn clear(&mut self, of: &mut NamesOf) {
        self.unused_groups.append(&mut of.groups);
        of.end = 0;
    }

    /// Host bytes, with those of the directories.
    pub(super) fn host_bytes<'a>(&self, of: impl Iterator<Item = &'a NamesOf>) -> usize {
        let unused = self.unused_groups.capacity() * size_of::<u32>();
        self.files.host_bytes() + unused + of.map(|of| of.groups.capacity() * size_of::<u32>()).sum::<usize>()
    }
}

/// Where a name is in the column.
fn place(of: &NamesOf, number: u32) -> u32 {
    of.groups[(number / GROUP) as usize] * GROUP + number % GROUP
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_keep_their_files_in_each_directory() {
        let (mut names, mut directories, mut model) =
            (Names::default(), [const { None::<NamesOf> }; 3], BTreeMap::new());
        // Numbers that come back in no order: n^2 mod 211 takes 106 values.
        for n in 0..1000u32 {
            let (dir, number) = ((n % 3) as usize, n * n % 211);
            let file = (n % 5 > 0).then_some(FileId(n));
            names.set(directories[dir].get_or_insert_default(), number, file);
            model.insert((dir, number), file);
        }
        for (dir, of) in directories.iter().enumerate() {
            let of = of.as_ref().expect("it has names");
            for number in 0..300 {
                assert_eq!(names.get(of, number), model.get(&(dir, number)).copied().flatten(), "{dir}/{number}");
            }
        }
    }

    #[test]
    fn groups_of_a_directory_that_is_gone_are_those_of_the_next_one() {
        let (mut names, mut of) = (Names::default(), NamesOf::default());
        for round in 0..3 {
            assert_eq!(names.get(&of, 70), None);
            names.set(&mut of, 70, Some(FileId(round)));
            assert_eq!([0, 69, 70].map(|number| names.get(&of, number)), [None, None, Some(FileId(round))]);
            names.clear(&mut of);
            assert_eq!(names.nr_groups, 2, "71 numbers are two groups of 64");
        }
    }

    #[test]
    fn many_small_directories_take_little_more_than_their_names() {
        let (mut names, mut directories) = (Names::default(), Vec::new());
        for dir in 0..1000 {
            let mut of = NamesOf::default();
            (0..16).for_each(|number| names.set(&mut of, number, Some(FileId(dir * 16 + number))));
            directories.push(of);
        }
        // A group of 4 bits each and 8 bytes, the first four numbers of a vector, and 32 bytes for 64 groups: 57 bytes.
        assert!(names.host_bytes(directories.iter()) < 1000 * 60, "{}", names.host_bytes(directories.iter()));
    }
}
