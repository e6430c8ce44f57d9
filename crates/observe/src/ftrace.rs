//! ftrace text: one line per tracepoint, as `trace_pipe` and `trace-cmd report` print it.
//!
//! `comm-pid [cpu] flags timestamp: event: fields`; the timestamp is seconds with six decimals. The twin has no
//! interrupt state, so its five flags are dots. Lines of tracepoints that [`TraceEvent`] lacks are read over.

use std::fmt::Write;
use std::sync::Arc;

use units::{CpuId, Nanos};

use crate::text::{Line, Lines};
use crate::{ParseError, TraceEvent};

/// A tracepoint with who hit it, where and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceRecord {
    /// Time since boot; text keeps microseconds.
    pub at: Nanos,
    /// The CPU.
    pub cpu: CpuId,
    /// The task's name (`kswapd0`).
    pub comm: Arc<str>,
    /// The task's id.
    pub pid: u32,
    /// What happened.
    pub event: TraceEvent,
}

const EXPECTED: &str = "\"comm-pid [cpu] flags seconds.micros: event: fields\"";

/// The records as ftrace text.
pub fn write_ftrace(records: &[TraceRecord]) -> String {
    let mut out = String::from("# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n");
    for record in records {
        write_record(&mut out, record).expect("writing to a String cannot fail");
    }
    out
}

/// Reads ftrace text; `file` only names it in errors.
pub fn parse_ftrace(file: &str, text: &str) -> Result<Vec<TraceRecord>, ParseError> {
    let mut records = Vec::new();
    let mut lines = Lines::new(file, text);
    while let Some(line) = lines.take() {
        if !is_remark(line.text) {
            records.extend(parse_record(line)?);
        }
    }
    Ok(records)
}

/// Whether a line is no event: the head, or where a real kernel's buffer has lost some (`CPU:0 [LOST 12 EVENTS]`).
fn is_remark(line: &str) -> bool {
    line.starts_with('#') || line.trim().is_empty() || line.starts_with("CPU:") && line.contains(" [LOST ")
}

fn write_record(out: &mut String, record: &TraceRecord) -> std::fmt::Result {
    let TraceRecord { at, cpu, comm, pid, event } = record;
    let (seconds, micros) = (at.0 / 1_000_000_000, at.0 / 1_000 % 1_000_000);
    write!(out, "{comm:>16}-{pid:<7} [{:03}] ..... {seconds:>5}.{micros:06}: ", cpu.0)?;
    writeln!(out, "{}: {event}", event.name())
}

/// The record of a line; `None` if its tracepoint is not known.
fn parse_record(line: Line<'_>) -> Result<Option<TraceRecord>, ParseError> {
    let bad = || line.error(EXPECTED);
    let (task, rest) = line.text.split_once(" [").ok_or_else(bad)?;
    let (cpu, rest) = rest.split_once(']').ok_or_else(bad)?;
    let (stamp, rest) = rest.split_once(": ").ok_or_else(bad)?;
    let (name, fields) = rest.split_once(": ").ok_or_else(bad)?;
    let (comm, pid) = parse_task(task).ok_or_else(bad)?;
    let cpu = CpuId(line.number(cpu.trim(), "the CPU")?);
    let stamp = stamp.split_ascii_whitespace().last().ok_or_else(bad)?;
    let at = parse_stamp(stamp).ok_or_else(bad)?;
    let event = TraceEvent::parse(name.trim(), fields)
        .map_err(|field| line.error(format!("{name} with a valid field {field}=")))?;
    Ok(event.map(|event| TraceRecord { at, cpu, comm: comm.into(), pid, event }))
}

/// `comm-pid`, with a thread group `(tgid)` after it that is dropped.
fn parse_task(task: &str) -> Option<(&str, u32)> {
    let task = match task.trim_end().strip_suffix(')') {
        Some(rest) => rest.rsplit_once('(')?.0,
        None => task,
    };
    let (comm, pid) = task.trim().rsplit_once('-')?;
    Some((comm, pid.parse().ok()?))
}

fn parse_stamp(stamp: &str) -> Option<Nanos> {
    let (seconds, micros) = stamp.split_once('.')?;
    let micros = (micros.len() == 6).then(|| micros.parse::<u64>().ok()).flatten()?;
    let nanos = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    nanos.checked_add(micros * 1_000).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Order, Pfn};

    fn record(event: TraceEvent) -> TraceRecord {
        let at = Nanos(1_234_567_890_000);
        TraceRecord { at, cpu: CpuId(3), comm: "kswapd0".into(), pid: 45, event }
    }

    fn extfrag() -> TraceEvent {
        TraceEvent::MmPageAllocExtfrag {
            pfn: Pfn(4096),
            alloc_order: Order(0),
            fallback_order: Order(4),
            pageblock_order: Order(9),
            alloc_migratetype: 1,
            fallback_migratetype: 0,
            change_ownership: false,
        }
    }

    #[test]
    fn a_line_has_the_columns_that_mmtests_reads() {
        // page: 0xffffea0000000000 + 4096 * 64 = ...40000.
        let expected = "         kswapd0-45      [003] .....  1234.567890: mm_page_alloc_extfrag: \
            page=ffffea0000040000 pfn=4096 alloc_order=0 fallback_order=4 pageblock_order=9 \
            alloc_migratetype=1 fallback_migratetype=0 fragmenting=1 change_ownership=0";
        let text = write_ftrace(&[record(extfrag())]);
        assert_eq!(text.lines().last(), Some(expected));
    }

    #[test]
    fn every_kind_of_event_comes_back() {
        let of_kernel = |name, text| TraceEvent::parse(name, text).unwrap().unwrap();
        let records = [
            extfrag(),
            of_kernel("mm_vmscan_kswapd_wake", "nid=1 order=9"),
            of_kernel("mm_compaction_suitable", "node=1 zone=DMA      order=-1 ret=skipped"),
            of_kernel("mm_compaction_kcompactd_wake", "nid=1 order=9 classzone_idx=Normal"),
        ]
        .map(record);
        assert_eq!(parse_ftrace("events.txt", &write_ftrace(&records)), Ok(records.to_vec()));
    }

    #[test]
    fn real_lines_are_read() {
        let text = "# comment\nCPU:1 [LOST 17 EVENTS]\n  Web Content-1234  (1200) [001] d..2.    12.000345: \
            mm_page_alloc_extfrag: page=00000000b2fbc6c5 pfn=0x1f400 alloc_order=2 fallback_order=10 \
            pageblock_order=9 alloc_migratetype=0 fallback_migratetype=1 fragmenting=0 change_ownership=1\n \
            a-1 [000] ..... 1.000000: sched_switch: prev_comm=a\n";
        let records = parse_ftrace("trace", text).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!((&*records[0].comm, records[0].pid), ("Web Content", 1234));
        assert_eq!(records[0].at, Nanos(12_000_345_000));
        assert!(!records[0].event.fragmenting());
        assert!(matches!(records[0].event, TraceEvent::MmPageAllocExtfrag { pfn: Pfn(0x1f400), .. }));
    }

    #[test]
    fn a_bad_field_is_named_with_its_line() {
        let text = "#\n kswapd0-45 [000] ..... 1.000000: mm_vmscan_kswapd_wake: nid=0 order=x\n";
        let error = parse_ftrace("events.txt", text).unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("events.txt", 2));
        assert_eq!(error.expected, "mm_vmscan_kswapd_wake with a valid field order=");
    }
}
