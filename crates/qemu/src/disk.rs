//! The data disk, made on the host: the same bytes every time, but for an XFS's times and generation numbers before xfsprogs 6.18.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use units::Bytes;

use crate::command::FileSystem;
use crate::error::{QemuError, io_error};
use crate::image::output;
use crate::release::Release;

const UUID: &str = "11111111-2222-3333-4444-555555555555";
/// Seconds since 1970 that a file system is stamped with.
const MADE_AT: &str = "1767225600";
const BLOCK: usize = 1 << 20;

/// Features of an ext4 that mke2fs 1.42 (2011) made by default. Kernels before [`CHECKSUMS_SINCE`] are given these: checksums
/// of metadata came with 3.5, their seed with 4.4.
const EXT4_OF_2011: &str = "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,flex_bg,sparse_super,large_file,\
    huge_file,uninit_bg,dir_nlink,extra_isize";
/// Kernels from this one on are given what the host's mke2fs makes by default.
const CHECKSUMS_SINCE: Release = (4, 4);

/// Makes a file of `size` with an empty file system in it, which the kernel `release` can mount.
pub(crate) fn make(path: &Path, size: Bytes, fs: FileSystem, release: Option<Release>) -> Result<(), QemuError> {
    make_sparse(path, size)?;
    let mut command = match fs {
        FileSystem::Ext4 => {
            let mut mke2fs = Command::new(program("mke2fs"));
            let extended = format!("hash_seed={UUID},lazy_itable_init=0,lazy_journal_init=0");
            // Small disks would have smaller blocks.
            mke2fs.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-U", UUID, "-E", &extended]);
            if release.is_some_and(|release| release < CHECKSUMS_SINCE) {
                mke2fs.args(["-O", EXT4_OF_2011]);
            }
            // e2fsprogs' own name for a fixed time, and the general one, which it knows since 1.47.1.
            mke2fs.env("E2FSPROGS_FAKE_TIME", MADE_AT).env("SOURCE_DATE_EPOCH", MADE_AT);
            mke2fs
        }
        FileSystem::Xfs { log, allocation_groups } => {
            let mut mkfs = Command::new(program("mkfs.xfs"));
            // What came to the format by and by is left out, so that kernels from 4.18 on can mount it.
            let features = format!("uuid={UUID},reflink=0,rmapbt=0,bigtime=0,inobtcount=0");
            mkfs.args(["-q", "-f"]);
            if release.is_some_and(|release| release < CHECKSUMS_SINCE) {
                // Format 4, as mkfs.xfs 3.1 (2011) made it: format 5 is for kernels from 3.15 on, sparse inodes from 4.2 on.
                mkfs.args(["-m", &format!("{features},crc=0,finobt=0"), "-i", "nrext64=0,sparse=0", "-n", "ftype=0"]);
            } else {
                mkfs.args(["-m", &features, "-i", "nrext64=0"]);
            }
            mkfs.env("SOURCE_DATE_EPOCH", MADE_AT).env("DETERMINISTIC_SEED", "1");
            if let Some(log) = log {
                mkfs.args(["-l", &format!("size={}", log.0)]);
            }
            if let Some(groups) = allocation_groups {
                mkfs.args(["-d", &format!("agcount={groups}")]);
            }
            mkfs
        }
    };
    let (name, package) = match fs {
        FileSystem::Ext4 => ("mke2fs", "e2fsprogs"),
        FileSystem::Xfs { .. } => ("mkfs.xfs", "xfsprogs"),
    };
    if !Path::new(command.get_program()).is_file() {
        let remedy = format!("on Debian: `apt-get install {package}`");
        return Err(QemuError::Missing { what: name.to_string(), remedy });
    }
    let made = output(command.arg(path));
    made.map(drop).map_err(|message| QemuError::Program { program: name.to_string(), message })
}

/// A program of the system administrator's, whose directory may not be on a user's path.
fn program(name: &str) -> std::path::PathBuf {
    let places = ["/usr/sbin", "/sbin", "/usr/bin", "/usr/local/sbin"].map(|dir| Path::new(dir).join(name));
    places.iter().find(|path| path.is_file()).cloned().unwrap_or_else(|| name.into())
}

/// A file of `size` that takes no room yet.
pub(crate) fn make_sparse(path: &Path, size: Bytes) -> Result<(), QemuError> {
    let file = File::create(path).map_err(io_error("make", path))?;
    file.set_len(size.0).map_err(io_error("extend", path))
}

/// Copies what `from` holds into `to`, from `offset` on; holes stay holes.
pub(crate) fn copy_at(from: &Path, to: &Path, offset: Bytes) -> Result<(), QemuError> {
    use rustix::fs::SeekFrom;
    let source = File::open(from).map_err(io_error("read", from))?;
    let target = OpenOptions::new().write(true).open(to).map_err(io_error("write", to))?;
    let seek = |position| match rustix::fs::seek(&source, position) {
        Ok(at) => Ok(Some(at)),
        // There is nothing behind the position.
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(error) => Err(io_error("find the content of", from)(error.into())),
    };
    let mut block = vec![0; BLOCK];
    let mut at = 0;
    while let Some(start) = seek(SeekFrom::Data(at))? {
        let end = seek(SeekFrom::Hole(start))?.unwrap_or(start);
        at = start;
        while at < end {
            let part = &mut block[..BLOCK.min((end - at) as usize)];
            source.read_exact_at(part, at).map_err(io_error("read", from))?;
            target.write_all_at(part, offset.0 + at).map_err(io_error("write", to))?;
            at += part.len() as u64;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_same_disk_is_the_same_bytes_and_can_be_put_behind_memory() {
        if !program("mke2fs").is_file() {
            eprintln!("skipped: mke2fs is not there (Debian: apt-get install e2fsprogs)");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (a, b, memory) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("m"));
        make(&a, Bytes::mib(64), FileSystem::Ext4, None).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1100));
        make(&b, Bytes::mib(64), FileSystem::Ext4, None).unwrap();
        let content = std::fs::read(&a).unwrap();
        assert!(content == std::fs::read(&b).unwrap());
        make_sparse(&memory, Bytes::mib(96)).unwrap();
        copy_at(&a, &memory, Bytes::mib(16)).unwrap();
        assert!(std::fs::read(&memory).unwrap()[16 << 20..80 << 20] == content);
    }

    #[test]
    fn an_xfs_has_the_format_of_its_kernel_and_the_groups_that_are_asked_for() {
        if !program("mkfs.xfs").is_file() {
            eprintln!("skipped: mkfs.xfs is not there (Debian: apt-get install xfsprogs)");
            return;
        }
        /// `sb_agcount` and `sb_versionnum` of the superblock, and the mask of the format (fs/xfs/libxfs/xfs_format.h, 6.12).
        const AGCOUNT: usize = 88;
        const VERSION: usize = 100;
        const NUMBITS: u16 = 0xf;
        let dir = tempfile::tempdir().unwrap();
        let format = |release, allocation_groups| {
            let path = dir.path().join("disk");
            make(&path, Bytes::gib(1), FileSystem::Xfs { log: None, allocation_groups }, release).unwrap();
            let mut bytes = [0; VERSION + 2];
            std::fs::File::open(&path).unwrap().read_exact(&mut bytes).unwrap();
            let version = u16::from_be_bytes(bytes[VERSION..VERSION + 2].try_into().unwrap()) & NUMBITS;
            (version, u32::from_be_bytes(bytes[AGCOUNT..AGCOUNT + 4].try_into().unwrap()))
        };
        assert_eq!((format(Some((3, 2)), None), format(Some((4, 18)), Some(8))), ((4, 4), (5, 8)));
    }

    #[test]
    fn kernels_before_checksums_are_given_a_file_system_without() {
        if !program("mke2fs").is_file() {
            eprintln!("skipped: mke2fs is not there (Debian: apt-get install e2fsprogs)");
            return;
        }
        /// `s_feature_ro_compat` of the superblock, and its bit (fs/ext4/ext4.h, 6.12).
        const RO_COMPAT: usize = 1024 + 0x64;
        const METADATA_CSUM: u32 = 0x400;
        let dir = tempfile::tempdir().unwrap();
        let checksums = |release| {
            let path = dir.path().join("disk");
            make(&path, Bytes::mib(64), FileSystem::Ext4, release).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            u32::from_le_bytes(bytes[RO_COMPAT..RO_COMPAT + 4].try_into().unwrap()) & METADATA_CSUM != 0
        };
        assert!(!checksums(Some((4, 3))));
        // What the host makes by default is its own affair, but the same for these.
        assert_eq!(checksums(Some((4, 4))), checksums(None));
    }
}
