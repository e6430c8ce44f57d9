//! Mappings.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::mm::{Advice as MmAdvice, MapFlags, ProtFlags};
use sys::{Access, Advice, Fd, Mapping, Result, SysError};
use units::{Bytes, PAGE_SIZE};

use crate::SysLinux;
use crate::contents::PageFill;
use crate::errno::sys_error;
use crate::files::write_all;
use crate::process::lock;

/// What stores write: not zero, so that a page that was written cannot be taken for one that was not.
const FILL: u8 = 0x5a;

/// A mapping of this process.
#[derive(Clone, Copy)]
pub(crate) struct Mapped {
    address: usize,
    /// Bytes, whole pages.
    length: usize,
    /// It is of no file.
    anonymous: bool,
}

impl Mapped {
    /// Address of `length` bytes at `offset`, if they lie in the mapping.
    fn part(self, offset: Bytes, length: u64) -> Result<*mut u8> {
        let end = offset.0.checked_add(length).ok_or(SysError::Invalid)?;
        if end > self.length as u64 {
            return Err(SysError::Invalid);
        }
        Ok((self.address + offset.0 as usize) as *mut u8)
    }
}

impl SysLinux {
    fn mapped(&self, mapping: Mapping) -> Result<Mapped> {
        lock(&self.process.mappings).get(mapping.id as usize).copied().flatten().ok_or(SysError::Invalid)
    }

    /// What fills pages of a mapping, if their contents matter.
    fn fill_of(&self, mapped: Mapped) -> Option<&PageFill> {
        self.process.fill.as_deref().filter(|_| mapped.anonymous)
    }

    fn install(&self, mapped: Mapped, length: Bytes) -> Mapping {
        let mut mappings = lock(&self.process.mappings);
        mappings.push(Some(mapped));
        Mapping { id: mappings.len() as u32 - 1, length }
    }

    pub(crate) fn map_anonymous(&self, length: Bytes, align: Bytes) -> Result<Mapping> {
        let pages = length.pages_up().bytes().0;
        if pages == 0 || !align.0.is_multiple_of(PAGE_SIZE) {
            return Err(SysError::Invalid);
        }
        let (size, align) = (pages as usize, (align.0 as usize).max(PAGE_SIZE as usize));
        let room = size.checked_add(align - PAGE_SIZE as usize).ok_or(SysError::NoMemory)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice; what is cut off at both ends lies in it
        // and nobody has seen it.
        let address = unsafe {
            let start = rustix::mm::mmap_anonymous(std::ptr::null_mut(), room, protection, MapFlags::PRIVATE)
                .map_err(sys_error)? as usize;
            let address = start.next_multiple_of(align);
            let (before, after) = (address - start, start + room - (address + size));
            if before > 0 {
                rustix::mm::munmap(start as *mut c_void, before).map_err(sys_error)?;
            }
            if after > 0 {
                rustix::mm::munmap((address + size) as *mut c_void, after).map_err(sys_error)?;
            }
            // A process that is forked later starts without it, as a process of the workload has an empty address space.
            rustix::mm::madvise(address as *mut c_void, size, MmAdvice::LinuxDontFork).map_err(sys_error)?;
            address
        };
        Ok(self.install(Mapped { address, length: size, anonymous: true }, length))
    }

    pub(crate) fn map_file(&self, fd: Fd, length: Bytes) -> Result<Mapping> {
        let file = self.file(fd)?;
        let size = length.pages_up().bytes().0 as usize;
        if size == 0 {
            return Err(SysError::Invalid);
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new shared mapping at an address of the kernel's choice.
        let address = unsafe {
            let start = rustix::mm::mmap(std::ptr::null_mut(), size, protection, MapFlags::SHARED, &*file, 0)
                .map_err(sys_error)?;
            rustix::mm::madvise(start, size, MmAdvice::LinuxDontFork).map_err(sys_error)?;
            start as usize
        };
        Ok(self.install(Mapped { address, length: size, anonymous: false }, length))
    }

    pub(crate) fn unmap(&self, mapping: Mapping) -> Result<()> {
        let mut mappings = lock(&self.process.mappings);
        let slot = mappings.get_mut(mapping.id as usize).ok_or(SysError::Invalid)?;
        let mapped = slot.take().ok_or(SysError::Invalid)?;
        // SAFETY: the whole mapping, which is no longer in the table, so that no later call can touch it.
        unsafe { rustix::mm::munmap(mapped.address as *mut c_void, mapped.length) }.map_err(sys_error)
    }

    pub(crate) fn advise(&self, mapping: Mapping, advice: Advice) -> Result<()> {
        let mapped = self.mapped(mapping)?;
        let madvice = match advice {
            Advice::HugePage => MmAdvice::LinuxHugepage,
            Advice::NoHugePage => MmAdvice::LinuxNoHugepage,
            Advice::DontNeed => MmAdvice::LinuxDontNeed,
            Advice::Random => MmAdvice::Random,
        };
        // SAFETY: the advice concerns a mapping of this table, which holds nothing but what stores of `touch` wrote.
        match unsafe { rustix::mm::madvise(mapped.address as *mut c_void, mapped.length, madvice) } {
            // A kernel that is built without huge pages does not know the word, and makes none.
            Err(Errno::INVAL) if advice == Advice::NoHugePage => Ok(()),
            advised => advised.map_err(sys_error),
        }
    }

    pub(crate) fn touch_range(&self, mapping: Mapping, offset: Bytes, length: Bytes, access: Access) -> Result<()> {
        let mapped = self.mapped(mapping)?;
        let start = mapped.part(offset, length.0)?;
        // SAFETY: the range lies in a mapping of this table; its bytes are only ever accessed here, as raw memory.
        unsafe {
            match (access, self.fill_of(mapped)) {
                (Access::Write, Some(fill)) => fill.store(start, length.0 as usize),
                (Access::Write, None) => std::ptr::write_bytes(start, FILL, length.0 as usize),
                (Access::Read, _) => read_all(start, length.0 as usize),
            }
        }
        Ok(())
    }

    /// Writes the first `length` bytes of a mapping to a file.
    pub(crate) fn write_mapped(&self, fd: Fd, offset: Bytes, source: Mapping, length: Bytes) -> Result<()> {
        let start = self.mapped(source)?.part(Bytes(0), length.0)?;
        let file = self.file(fd)?;
        write_all(offset, length, |done, at| {
            let at = i64::try_from(at).map_err(|_| Errno::FBIG)?;
            let (from, left) = (start.wrapping_add(done as usize), (length.0 - done) as usize);
            // SAFETY: the range lies in a mapping of this table; only the kernel reads it, as raw memory.
            let written = unsafe { libc::pwrite(file.as_raw_fd(), from.cast(), left, at) };
            let failed = || Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO);
            usize::try_from(written).map_err(|_| failed())
        })
    }

    pub(crate) fn poke_byte(&self, mapping: Mapping, offset: Bytes, access: Access) -> Result<()> {
        let mapped = self.mapped(mapping)?;
        let at = mapped.part(offset, 1)?;
        // SAFETY: the byte lies in a mapping of this table; volatile, so that the access happens.
        unsafe {
            match (access, self.fill_of(mapped)) {
                (Access::Write, Some(fill)) => fill.store(at, 1),
                (Access::Write, None) => at.write_volatile(FILL),
                (Access::Read, _) => drop(at.read_volatile()),
            }
        }
        Ok(())
    }

    pub(crate) fn is_resident(&self, mapping: Mapping, offset: Bytes) -> bool {
        let Ok(mapped) = self.mapped(mapping) else { return false };
        let Ok(page) = mapped.part(Bytes(offset.0 / PAGE_SIZE * PAGE_SIZE), PAGE_SIZE) else { return false };
        let mut resident = 0u8;
        // SAFETY: the page lies in a mapping, and one byte is written for one page.
        let answer = unsafe { libc::mincore(page.cast(), PAGE_SIZE as usize, &raw mut resident) };
        answer == 0 && resident & 1 == 1
    }
}

/// Loads every byte, eight at a time where they are aligned.
///
/// # Safety
/// `length` bytes from `start` are mapped.
unsafe fn read_all(start: *const u8, length: usize) {
    let head = start.align_offset(8).min(length);
    let words = (length - head) / 8;
    // SAFETY: within the range that the caller promises; volatile, because other threads may write it meanwhile.
    unsafe {
        for i in (0..head).chain(head + words * 8..length) {
            start.add(i).read_volatile();
        }
        let first = start.add(head).cast::<u64>();
        for i in 0..words {
            first.add(i).read_volatile();
        }
    }
}
