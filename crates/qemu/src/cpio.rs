//! An initramfs: cpio in its `newc` form.
//!
//! Source: Documentation/driver-api/early-userspace/buffer-format.rst (6.12). Every figure is eight hexadecimal digits; names
//! and contents are filled up to multiples of four bytes. Inode numbers count up and times are zero, so that the same
//! files give the same bytes.

use std::collections::BTreeSet;

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const END: &str = "TRAILER!!!";

/// An archive that grows.
#[derive(Default)]
pub(crate) struct Cpio {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
}

impl Cpio {
    /// Adds a file, and the directories above it that are not there yet.
    pub(crate) fn file(&mut self, path: &str, content: &[u8]) {
        let path = path.trim_start_matches('/');
        for (slash, _) in path.match_indices('/') {
            self.directory(&path[..slash]);
        }
        self.entry(path, PROGRAM, content);
    }

    /// Adds a directory.
    pub(crate) fn directory(&mut self, path: &str) {
        let path = path.trim_start_matches('/');
        if self.directories.insert(path.to_string()) {
            self.entry(path, DIRECTORY, &[]);
        }
    }

    /// The archive with its end.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry(END, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let (size, name_size) = (content.len() as u32, name.len() as u32 + 1);
        // ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor, namesize, check.
        let figures = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for figure in figures {
            self.bytes.extend_from_slice(format!("{figure:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.fill();
        self.bytes.extend_from_slice(content);
        self.fill();
    }

    fn fill(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_layout_of_the_format() {
        let mut cpio = Cpio::default();
        cpio.file("/a/b", b"hello");
        let bytes = cpio.finish();
        let text = String::from_utf8_lossy(&bytes);
        // 6 + 13 * 8 = 110 bytes of header; "a\0" ends at 112, which is a multiple of four.
        assert!(text.starts_with("07070100000001000041ed"), "{text}");
        assert_eq!(&bytes[110..112], b"a\0");
        // "a/b\0": 112 + 110 + 4 = 226, filled to 228; then the content.
        assert_eq!(&bytes[222..226], b"a/b\0");
        assert_eq!(&bytes[228..233], b"hello");
        assert!(text.contains(END) && bytes.len() % 4 == 0);
    }

    #[test]
    fn a_directory_is_made_once() {
        let mut cpio = Cpio::default();
        cpio.file("/lib/x", b"");
        cpio.file("/lib/y", b"");
        assert_eq!(cpio.entries, 3);
    }
}
