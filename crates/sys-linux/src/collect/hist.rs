//! Histograms of tracepoints: the kernel counts, nothing is copied out while the workload runs.
//!
//! Source: Documentation/trace/histogram.rst (6.12).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A histogram trigger: the event below `events/`, and what is written to its `trigger` file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistTrigger {
    /// System and event.
    pub event: &'static str,
    /// Keys, values and size.
    pub trigger: &'static str,
}

const fn trigger(event: &'static str, trigger: &'static str) -> HistTrigger {
    HistTrigger { event, trigger }
}

/// What a run counts.
#[rustfmt::skip]
pub const TRIGGERS: &[HistTrigger] = &[
    trigger("kmem/mm_page_alloc_extfrag", "hist:keys=fallback_order,alloc_migratetype,fallback_migratetype:size=512"),
    trigger("kmem/mm_page_alloc_extfrag", "hist:keys=alloc_order,change_ownership:size=256"),
    trigger("vmscan/mm_vmscan_kswapd_wake", "hist:keys=order:size=128"),
    trigger("vmscan/mm_vmscan_wakeup_kswapd", "hist:keys=order:size=128"),
    trigger("vmscan/mm_vmscan_direct_reclaim_begin", "hist:keys=order:size=128"),
    trigger("vmscan/mm_vmscan_lru_shrink_inactive", "hist:keys=priority:vals=nr_scanned,nr_reclaimed:size=128"),
    trigger("vmscan/mm_vmscan_throttled", "hist:keys=reason:vals=usec_timeout,usec_delayed:size=128"),
    trigger("compaction/mm_compaction_begin", "hist:keys=sync:size=128"),
    trigger("compaction/mm_compaction_end", "hist:keys=status:size=128"),
    trigger("compaction/mm_compaction_migratepages", "hist:keys=common_type:vals=nr_migrated,nr_failed:size=128"),
    trigger("writeback/balance_dirty_pages", "hist:keys=common_pid:vals=pause,dirtied:size=256"),
];

/// Histograms that count; they are taken away when this goes.
pub struct Histograms {
    tracefs: PathBuf,
    active: Vec<HistTrigger>,
}

impl Histograms {
    /// Starts to count; also tells which triggers this kernel refused, and why. An event that it does not have is told
    /// in the same way.
    pub fn start(tracefs: &Path, triggers: &[HistTrigger]) -> (Histograms, Vec<(HistTrigger, io::Error)>) {
        let mut histograms = Histograms { tracefs: tracefs.to_owned(), active: Vec::new() };
        let mut refused = Vec::new();
        for trigger in triggers {
            match append(&histograms.file(trigger.event, "trigger"), trigger.trigger) {
                Ok(()) => histograms.active.push(*trigger),
                Err(error) => refused.push((*trigger, error)),
            }
        }
        (histograms, refused)
    }

    fn file(&self, event: &str, name: &str) -> PathBuf {
        self.tracefs.join("events").join(event).join(name)
    }

    /// The histograms so far: a file for each event, named `system.event`.
    ///
    /// # Errors
    /// A file of tracefs cannot be read.
    pub fn read(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for trigger in &self.active {
            let name = trigger.event.replace('/', ".");
            if !files.iter().any(|(known, _)| *known == name) {
                files.push((name, fs::read(self.file(trigger.event, "hist"))?));
            }
        }
        Ok(files)
    }
}

impl Drop for Histograms {
    fn drop(&mut self) {
        for trigger in &self.active {
            // On the way out there is nobody to tell; what stays only counts on.
            let _ = append(&self.file(trigger.event, "trigger"), &format!("!{}", trigger.trigger));
        }
    }
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().append(true).open(path)?.write_all(text.as_bytes())
}
