//! The debug port of QEMU's `isa-debugcon`.
#![allow(unsafe_code)]

use std::io::{self, Write};

/// Port that the results go through.
pub(crate) const RESULTS_PORT: u16 = 0xe9;

/// Writes to a debug port.
pub(crate) struct DebugPort(u16);

impl DebugPort {
    /// Asks for the right to write to the port.
    pub(crate) fn open(port: u16) -> io::Result<DebugPort> {
        // SAFETY: only the port of a debug console, which has no effect on the guest.
        match unsafe { libc::ioperm(port.into(), 1, 1) } {
            0 => Ok(DebugPort(port)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Write for DebugPort {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads the bytes of the slice and writes them to a port that this process may write to.
        unsafe {
            std::arch::asm!(
                "rep outsb",
                inout("rsi") bytes.as_ptr() => _,
                inout("rcx") bytes.len() => _,
                in("dx") self.0,
                options(readonly, nostack, preserves_flags)
            );
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
