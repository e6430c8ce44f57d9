//! Which Linux a kernel image is, before it is booted.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A kernel's version and patch level, 4 and 4 of 4.4.0-21-generic.
pub(crate) type Release = (u32, u32);

/// The image's signature, and what lies behind it from protocol 2.0 on (Documentation/x86/boot.rst, 6.12).
const MAGIC: (u64, [u8; 4]) = (0x202, *b"HdrS");
/// Where the image says at which offset its release is; 0x200 less than that.
const KERNEL_VERSION: u64 = 0x20e;
const SECTOR: u64 = 0x200;

/// The release that an image says it is; none if it does not say so in the way of x86.
pub(crate) fn release_of(image: &Path) -> Option<Release> {
    let file = File::open(image).ok()?;
    let (mut magic, mut offset, mut text) = ([0; 4], [0; 2], [0; 16]);
    file.read_exact_at(&mut magic, MAGIC.0).ok().filter(|()| magic == MAGIC.1)?;
    file.read_exact_at(&mut offset, KERNEL_VERSION).ok()?;
    file.read_exact_at(&mut text, u64::from(u16::from_le_bytes(offset)) + SECTOR).ok()?;
    parse(&String::from_utf8_lossy(&text))
}

fn parse(text: &str) -> Option<Release> {
    let mut figures = text.split(|c: char| !c.is_ascii_digit()).map(|figure| figure.parse().ok());
    Some((figures.next()??, figures.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_its_first_two_figures() {
        assert_eq!(parse("4.4.0-21-generic (b"), Some((4, 4)));
        assert_eq!(parse("3.19.12.27 (root@x)"), Some((3, 19)));
        assert_eq!((parse("vmlinuz"), parse("6"), parse("")), (None, None, None));
    }

    #[test]
    fn the_image_says_where_its_release_stands() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        let mut image = vec![0; 0x1000];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x600u16.to_le_bytes());
        image[0x800..0x810].copy_from_slice(b"3.1.3-mm (a@b) #");
        std::fs::write(&path, &image).unwrap();
        assert_eq!(release_of(&path), Some((3, 1)));
        image[0x202] = b'X';
        std::fs::write(&path, &image).unwrap();
        assert_eq!(release_of(&path), None, "not of x86");
        assert_eq!(release_of(&dir.path().join("none")), None);
    }
}
