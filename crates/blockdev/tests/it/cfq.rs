//! CFQ: turns, idling, writes that wait.

use crate::drive::*;
use crate::queue::slow;
use blockdev::{Bio, BlockDevice, CfqSpec, Completion, DeviceSpec, HddSpec, Op, QueueSpec, SchedulerSpec};
use units::Nanos;

const MS: u64 = 1_000_000;

/// One command at a time, 1 ms each.
fn cfq() -> BlockDevice {
    slow(QueueSpec { scheduler: SchedulerSpec::Cfq, ..QueueSpec::default() })
}

/// A read by a process; they are too far apart to merge, and near enough not to be seeks.
fn read(context: u32, n: u64) -> Bio {
    Bio { context, id: u64::from(context) * 1000 + n, ..bio(Op::Read, u64::from(context) * 1_000_000 + n * 16, PAGE) }
}

fn write(n: u64) -> Bio {
    Bio { id: n, ..bio(Op::Write, 100_000_000 + n * 16, PAGE) }
}

/// Lets the device go on to an instant.
fn until(device: &mut BlockDevice, end: u64, done: &mut Vec<Completion>) {
    while let Some(at) = device.next_event().filter(|at| *at <= Nanos(end)) {
        device.advance(at, done);
    }
}

fn ids(done: &[Completion]) -> Vec<u64> {
    done.iter().map(|completion| completion.id).collect()
}

#[test]
fn processes_take_turns_and_not_requests() {
    let mut device = cfq();
    // Alternately submitted; each process's ten come in a row.
    let bios = (0..10).flat_map(|n| [read(1, n), read(2, n)]);
    let done = ids(&at_once(&mut device, Nanos::ZERO, bios));
    assert_eq!(done[..10], (1000..1010).collect::<Vec<_>>());
    assert_eq!(done[10..], (2000..2010).collect::<Vec<_>>());
}

#[test]
fn a_turn_lasts_100_ms_from_its_first_completion() {
    let mut device = cfq();
    let bios = (0..300).map(|n| read(1, n)).chain((0..300).map(|n| read(2, n)));
    let done = ids(&at_once(&mut device, Nanos::ZERO, bios));
    // The first completes at 1 ms and begins the slice; the 101st at 101 ms ends it.
    let first = done.iter().take_while(|id| **id < 2000).count();
    assert_eq!(first, 101);
    let second = done[first..].iter().take_while(|id| **id >= 2000).count();
    assert_eq!(second, 101);
}

#[test]
fn a_read_takes_the_turn_of_writes_at_once() {
    let mut device = cfq();
    let mut done = Vec::new();
    for n in 0..100 {
        device.submit(Nanos::ZERO, write(n));
    }
    until(&mut device, 5 * MS + MS / 2, &mut done);
    device.submit(Nanos(5 * MS + MS / 2), read(1, 0));
    done.extend(drain(&mut device));
    // Five are done, the sixth is in the device.
    assert_eq!(done[6].id, 1000);
}

#[test]
fn the_disk_is_kept_idle_for_8_ms_for_the_next_read_of_a_process() {
    for (pause, before) in [(7, true), (9, false)] {
        let mut device = cfq();
        let mut done = Vec::new();
        device.submit(Nanos::ZERO, read(1, 0));
        until(&mut device, MS / 2, &mut done);
        for n in 0..50 {
            device.submit(Nanos(MS / 2), write(n));
        }
        let now = (1 + pause) * MS + MS / 2;
        until(&mut device, now, &mut done);
        assert_eq!(done.len(), if before { 1 } else { 2 }, "writes begin at 9 ms: one is done at 10");
        device.submit(Nanos(now), read(1, 1));
        done.extend(drain(&mut device));
        assert_eq!(done[1].id == 1001, before);
    }
}

#[test]
fn without_idling_writes_go_on_after_each_read() {
    let cfq = CfqSpec { slice_idle_ms: 0, ..CfqSpec::default() };
    let mut device = slow(QueueSpec { scheduler: SchedulerSpec::Cfq, cfq, ..QueueSpec::default() });
    let mut done = Vec::new();
    device.submit(Nanos::ZERO, read(1, 0));
    device.submit(Nanos::ZERO, write(0));
    until(&mut device, 3 * MS, &mut done);
    assert_eq!(ids(&done), [1000, 0]);
}

#[test]
fn writes_share_the_disk_with_a_busy_reader() {
    let mut device = cfq();
    let bios = (0..400).map(|n| read(1, n)).chain((0..400).map(write));
    let done = ids(&at_once(&mut device, Nanos::ZERO, bios));
    let reads = done.iter().take_while(|id| **id >= 1000).count();
    let writes = done[reads..].iter().take_while(|id| **id < 1000).count();
    // Of 300 ms half is the readers', who are one of two busy queues: over at the end of its second slice. The other half is
    // the writers', times 40 / 100: 60 ms, which is over at the end of their fourth slice of 16.
    assert_eq!((reads, writes), (202, 64));
}

#[test]
fn requests_of_two_processes_do_not_merge() {
    let mut device = cfq();
    let beside = |context, n: u64| Bio { context, ..bio(Op::Read, n * 8, PAGE) };
    at_once(&mut device, Nanos::ZERO, [beside(1, 0), beside(2, 1), beside(1, 3), beside(2, 2)]);
    assert_eq!(device.stats().read.merges, 1, "1 and 2 of process 2 touch");
}

/// A page that a process reads.
fn page(context: u32, sector: u64) -> Bio {
    Bio { context, id: sector, ..bio(Op::Read, sector, PAGE) }
}

#[test]
fn a_process_that_is_near_gets_the_turn_instead_of_the_disk_s_idling() {
    // 4 MiB behind the head, which is at 8; the disk is idle from 1 ms to 9 ms for a request that does not come.
    for (sector, end) in [(8 + 8192, 2), (8 + 8193, 10)] {
        let mut device = cfq();
        let mut done = Vec::new();
        device.submit(Nanos::ZERO, page(1, 0));
        until(&mut device, MS / 2, &mut done);
        device.submit(Nanos(MS / 2), page(2, sector));
        done.extend(drain(&mut device));
        assert_eq!(done[1].at.0 / MS, end, "{sector}");
    }
}

/// Two processes share a queue: the second got the turn of the first, whose next request goes where the second's go.
fn sharing(done: &mut Vec<Completion>) -> BlockDevice {
    let mut device = cfq();
    device.submit(Nanos::ZERO, page(1, 0));
    until(&mut device, MS / 2, done);
    device.submit(Nanos(MS / 2), page(2, 1000));
    until(&mut device, 3 * MS, done);
    device.submit(Nanos(3 * MS), page(1, 1100));
    device
}

/// Whether a request of the second process and one of the first behind it become one, while the device is busy.
fn merge(device: &mut BlockDevice, at: Nanos, sector: u64) -> bool {
    let before = device.stats().read.merges;
    device.submit(at, page(2, sector));
    device.submit(at, page(1, sector + 8));
    device.stats().read.merges > before
}

#[test]
fn processes_that_share_a_queue_have_their_requests_merged() {
    let mut done = Vec::new();
    let mut device = sharing(&mut done);
    until(&mut device, 3 * MS + MS / 2, &mut done);
    assert!(merge(&mut device, Nanos(3 * MS + MS / 2), 1200));
}

#[test]
fn a_shared_queue_that_seeks_is_split() {
    let mut done = Vec::new();
    let mut device = sharing(&mut done);
    // Five of the last 32 requests follow a seek of more than 400 KiB; then the queue is empty, and not waited for.
    for n in 1..=6 {
        let at = Nanos((10 * n) * MS);
        until(&mut device, at.0, &mut done);
        device.submit(at, page(2, 1000 + n * 100_000));
    }
    done.extend(drain(&mut device));
    let at = Nanos(100 * MS);
    device.submit(at, page(1, 5000));
    until(&mut device, at.0 + MS / 2, &mut done);
    assert!(!merge(&mut device, Nanos(at.0 + MS / 2), 6000));
}

#[test]
fn a_reader_beside_a_stream_of_writes_is_served_sooner_than_by_deadline() {
    let latency = |scheduler| {
        let queue = QueueSpec { scheduler, max_sectors_kb: 512, ..QueueSpec::default() };
        let spec = DeviceSpec::Hdd(HddSpec::seven_two_k_2010s());
        let mut device = BlockDevice::new(&spec, &queue, 1).expect("valid");
        for n in 0..400u64 {
            device.submit(Nanos::ZERO, Bio { id: n, ..bio(Op::Write, 500_000_000 + n * 2048, 1024) });
        }
        let (mut done, mut total) = (Vec::new(), 0);
        until(&mut device, 100 * MS, &mut done);
        let mut now = Nanos(100 * MS);
        for n in 0..20 {
            device.submit(now, Bio { context: 1, id: 10_000 + n, ..bio(Op::Read, n * 256, 256) });
            done.clear();
            while !done.iter().any(|completion| completion.id == 10_000 + n) {
                let at = device.next_event().expect("it is under way");
                device.advance(at, &mut done);
                now = now.max(at);
            }
            total += done.iter().find(|c| c.id == 10_000 + n).map(|c| c.at.0 - c.submitted.0).expect("done");
        }
        total / 20
    };
    let (fair, deadline) = (latency(SchedulerSpec::Cfq), latency(SchedulerSpec::MqDeadline));
    assert!(fair * 2 < deadline, "{fair} ns, {deadline} ns");
}
