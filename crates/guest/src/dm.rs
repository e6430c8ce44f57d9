//! A linear device-mapper device over a whole disk.
//!
//! Source: include/uapi/linux/dm-ioctl.h (6.12): every request starts with the same header; a table's targets follow it.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const CONTROL: &str = "/dev/mapper/control";
/// `_IOWR(0xfd, nr, struct dm_ioctl)`; the header has 312 bytes.
const fn request(nr: u64) -> u64 {
    3 << 30 | 312 << 16 | 0xfd << 8 | nr
}
const DEV_CREATE: u64 = request(3);
const DEV_SUSPEND: u64 = request(6);
const TABLE_LOAD: u64 = request(9);

/// `struct dm_ioctl`.
#[repr(C)]
struct Header {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_nr: u32,
    padding: u32,
    dev: u64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
}

/// `struct dm_target_spec` and the parameters of its target.
#[repr(C)]
struct Target {
    sector_start: u64,
    length: u64,
    status: i32,
    next: u32,
    target_type: [u8; 16],
    params: [u8; 64],
}

#[repr(C)]
struct Request {
    header: Header,
    target: Target,
}

fn copy_text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

impl Request {
    fn new(name: &str, target_count: u32, sectors: u64, params: &str) -> Request {
        let header = Header {
            version: [4, 0, 0],
            data_size: size_of::<Request>() as u32,
            data_start: size_of::<Header>() as u32,
            target_count,
            open_count: 0,
            flags: 0,
            event_nr: 0,
            padding: 0,
            dev: 0,
            name: copy_text(name),
            uuid: [0; 129],
            data: [0; 7],
        };
        let target = Target {
            sector_start: 0,
            length: sectors,
            status: 0,
            next: size_of::<Target>() as u32,
            target_type: copy_text("linear"),
            params: copy_text(params),
        };
        Request { header, target }
    }

    fn send(&mut self, control: &File, number: u64) -> io::Result<()> {
        // SAFETY: the kernel reads and writes at most `data_size` bytes, which is the size of the request.
        match unsafe { libc::ioctl(control.as_raw_fd(), number as _, &raw mut *self) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Makes the device-mapper device `name` over the whole of `disk`.
pub(crate) fn make_linear(disk: &Path, name: &str) -> io::Result<()> {
    let sectors = File::open(disk)?.seek(SeekFrom::End(0))? / 512;
    let number = disk.metadata()?.rdev();
    let params = format!("{}:{} 0", rustix::fs::major(number), rustix::fs::minor(number));
    let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
    Request::new(name, 0, 0, "").send(&control, DEV_CREATE)?;
    Request::new(name, 1, sectors, &params).send(&control, TABLE_LOAD)?;
    Request::new(name, 0, 0, "").send(&control, DEV_SUSPEND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_kernels_sizes() {
        // include/uapi/linux/dm-ioctl.h: DM_DEV_CREATE is 0xc138fd03.
        assert_eq!((size_of::<Header>(), size_of::<Target>() - 64), (312, 40));
        assert_eq!(DEV_CREATE, 0xc138_fd03);
    }
}
