//! Makes a swap area: the header of version 1.
//!
//! Source: include/linux/swap.h (`union swap_header`, 6.12).

use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use units::{Bytes, PAGE_SIZE};

/// Writes the header to the whole device.
pub(crate) fn make_swap(device: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(device)?;
    let size = Bytes(file.seek(SeekFrom::End(0))?);
    file.rewind()?;
    file.write_all(&header(size))?;
    file.sync_all()
}

/// The first page: after 1024 bytes for a boot loader version 1 and the last page; the signature at the end.
fn header(size: Bytes) -> Vec<u8> {
    let mut page = vec![0; PAGE_SIZE as usize];
    let last = size.pages_down().0 as u32 - 1;
    page[1024..1028].copy_from_slice(&1u32.to_le_bytes());
    page[1028..1032].copy_from_slice(&last.to_le_bytes());
    page[PAGE_SIZE as usize - 10..].copy_from_slice(b"SWAPSPACE2");
    page
}

/// The device has a priority, which stands below it (`SWAP_FLAG_PREFER`, include/linux/swap.h).
const PREFER: i32 = 0x8000;

/// Uses the area, with a priority if it is given one.
#[allow(unsafe_code)]
pub(crate) fn swap_on(device: &Path, priority: Option<u16>) -> io::Result<()> {
    let path = std::ffi::CString::new(device.as_os_str().as_encoded_bytes())?;
    let flags = priority.map_or(0, |priority| PREFER | i32::from(priority));
    // SAFETY: a string with its end.
    match unsafe { libc::swapon(path.as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_names_the_last_page() {
        let page = header(Bytes::mib(1));
        assert_eq!(page.len(), 4096);
        assert_eq!(page[1028..1032], 255u32.to_le_bytes());
        assert_eq!(&page[4086..], b"SWAPSPACE2");
    }
}
