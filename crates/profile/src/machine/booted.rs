//! What a machine holds and runs beside the workload since it was booted.

use serde::Deserialize;
use toml::Spanned;
use units::Bytes;

use super::Machine;
use crate::text::Text;
use crate::{ProfileError, Size};

/// Most threads and daemons.
const TASKS_MAX: u32 = 100_000;
/// Least and most seconds between two times that a daemon works.
const PERIOD_S: std::ops::RangeInclusive<f64> = 0.001..=1e6;

/// Memory of the kernel and of daemons, as `/proc/meminfo` shows it on a machine that was just booted.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Booted {
    /// Where the figures come from.
    pub source: String,
    /// Threads of the kernel: each has a stack.
    pub kernel_threads: Spanned<u32>,
    /// Daemons: processes with a stack, page tables and a share of `anon`.
    pub daemons: Spanned<u32>,
    /// Their anonymous memory and that of tmpfs (`AnonPages`, `Shmem`).
    pub anon: Spanned<Size>,
    /// Seconds between two times that a daemon works.
    pub period_s: Spanned<f64>,
    /// Slabs that no shrinker frees, without those of tasks (`SUnreclaim`).
    pub slab_unreclaimable: Spanned<Size>,
    /// Slabs of the reclaimable caches whose objects are in use for good (a part of `SReclaimable`).
    pub slab_reclaimable: Spanned<Size>,
    /// Pages of the kernel that are not slab: modules, per-CPU data, buffers of drivers.
    pub pages: Spanned<Size>,
}

impl Booted {
    fn total(&self) -> Bytes {
        let parts = [&self.anon, &self.slab_unreclaimable, &self.slab_reclaimable, &self.pages];
        Bytes(parts.iter().map(|part| part.get_ref().0.0).fold(0, u64::saturating_add))
    }
}

impl Machine {
    pub(super) fn check_booted(&self, text: &Text) -> Result<(), ProfileError> {
        let Some(booted) = &self.booted else { return Ok(()) };
        for (key, count) in [("kernel-threads", &booted.kernel_threads), ("daemons", &booted.daemons)] {
            if *count.get_ref() > TASKS_MAX {
                let message = format!("{}: expected {TASKS_MAX} at most", count.get_ref());
                return Err(text.invalid(count.span(), &format!("booted.{key}"), message));
            }
        }
        if !PERIOD_S.contains(booted.period_s.get_ref()) {
            let message = format!("{}: expected 0.001 to 10^6 seconds", booted.period_s.get_ref());
            return Err(text.invalid(booted.period_s.span(), "booted.period-s", message));
        }
        if booted.total().0 > self.memory().0 / 2 {
            let message = "expected sizes that take half of the machine's memory at most".to_string();
            return Err(text.invalid(booted.anon.span(), "booted", message));
        }
        Ok(())
    }
}
