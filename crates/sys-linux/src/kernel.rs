//! What a program cannot do by itself, as far as the kernel does it when asked: blocks of pages, and sysctls.
//!
//! Rule: one more page in the pool of huge pages is one block of order 9, tried for with the flags of `like-hugetlb`
//! (`GFP_HIGHUSER_MOVABLE` and `__GFP_REPEAT`, `__GFP_RETRY_MAYFAIL` since 4.13); one page less gives one back. Only where the
//! machine is the run's own.
//! Source: `set_max_huge_pages()`, `alloc_fresh_huge_page()`, `htlb_alloc_mask()`, mm/hugetlb.c (4.4).
//! Omitted: other orders and flags, which take a module of the kernel.

use std::fs;
use std::path::PathBuf;

use rustix::io::Errno;
use sys::{PageBlock, Result, SysError};
use units::{Gfp, Order};

use crate::SysLinux;
use crate::errno::sys_error;
use crate::process::SyncScope;

/// The pool, as `sysctl` calls it.
const POOL: &str = "vm.nr_hugepages";
/// Order and flags of a page of the pool.
const HUGE: (Order, Gfp) = (Order(9), Gfp::HIGHUSER_MOVABLE.with(Gfp::RETRY_MAYFAIL).with(Gfp::NOWARN));

impl SysLinux {
    fn owns_machine(&self) -> bool {
        self.process.config.sync == SyncScope::Machine
    }

    /// A block of pages; none if the kernel could not make one.
    pub(crate) fn alloc_block(&self, gfp: Gfp, order: Order) -> Result<Option<PageBlock>> {
        if !self.owns_machine() || (order, gfp) != HUGE {
            return Err(SysError::NeedsModule);
        }
        let held = self.read_sysctl(POOL)?;
        self.write_sysctl(POOL, held + 1)?;
        Ok((self.read_sysctl(POOL)? > held).then_some(PageBlock(held as u32)))
    }

    /// Gives a block back: whichever the kernel takes.
    pub(crate) fn free_block(&self) -> Result<()> {
        let held = self.read_sysctl(POOL)?;
        self.write_sysctl(POOL, held.checked_sub(1).ok_or(SysError::Invalid)?)
    }

    pub(crate) fn read_sysctl(&self, name: &str) -> Result<u64> {
        fs::read_to_string(file_of(name)).ok().and_then(|text| text.trim().parse().ok()).ok_or(SysError::NoSysctl)
    }

    pub(crate) fn write_sysctl(&self, name: &str, value: u64) -> Result<()> {
        if !self.owns_machine() {
            return Err(SysError::NoSysctl);
        }
        let refused = |error: std::io::Error| Errno::from_io_error(&error).map_or(SysError::Io, sys_error);
        fs::write(file_of(name), value.to_string()).map_err(refused)
    }
}

fn file_of(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysctl_is_a_file() {
        assert_eq!(file_of("vm.min_free_kbytes"), PathBuf::from("/proc/sys/vm/min_free_kbytes"));
    }
}
