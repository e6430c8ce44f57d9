//! Merging, mq-deadline, congestion.

use crate::drive::*;
use blockdev::{Batch, Bio, BlockDevice, DeadlineSpec, DeviceSpec, Op, QueueSpec, Raid0Spec, SchedulerSpec, SsdSpec};
use units::Nanos;

/// One command at a time, 1 ms each: the order of completion is the order of dispatch.
pub(crate) fn slow(queue: QueueSpec) -> BlockDevice {
    let spec = SsdSpec {
        queue_depth: 1,
        channels: 1,
        read_latency_ns: 1_000_000,
        write_latency_ns: 1_000_000,
        command_overhead_ns: 0,
        read_bytes_per_s: 1_000_000_000_000,
        write_bytes_per_s: 1_000_000_000_000,
        interface_bytes_per_s: 1_000_000_000_000,
        ..SsdSpec::sata_2015()
    };
    BlockDevice::new(&DeviceSpec::Ssd(spec), &queue, 1).expect("valid")
}

fn ids(device: &mut BlockDevice, bios: &[Bio]) -> Vec<u64> {
    let done = at_once(device, Nanos::ZERO, bios.iter().copied());
    done.iter().map(|c| c.id).collect()
}

fn reads(sectors: &[u64]) -> Vec<Bio> {
    sectors.iter().map(|&s| bio(Op::Read, s, PAGE)).collect()
}

#[test]
fn none_dispatches_in_order_of_arrival() {
    let mut device = slow(QueueSpec { scheduler: SchedulerSpec::None, ..QueueSpec::default() });
    assert_eq!(ids(&mut device, &reads(&[500, 100, 300])), [500, 100, 300]);
}

/// Dispatched requests, bios that merged and the end of the first one, of eight adjacent pages, each handed over alone or all in one plug.
fn eight_pages(mut device: BlockDevice, alone: bool) -> (u64, u64, Nanos) {
    for page in 0..8 {
        device.submit(Nanos::ZERO, bio(Op::Read, page * u64::from(PAGE), PAGE));
        if alone {
            device.unplug(Nanos::ZERO);
        }
    }
    let done = drain(&mut device);
    assert_eq!(done.len(), 8);
    let stats = device.stats().read;
    (stats.ios, stats.merges, done[0].at)
}

#[test]
fn an_idle_device_begins_with_the_first_bio_when_it_is_not_in_a_plug() {
    let requests = |alone| {
        let (ios, merges, _) = eight_pages(slow(QueueSpec::default()), alone);
        (ios, merges)
    };
    // The others merge behind the first one's back.
    assert_eq!((requests(false), requests(true)), ((1, 7), (2, 6)));
    let member = DeviceSpec::Ssd(SsdSpec { queue_depth: 1, ..SsdSpec::sata_2015() });
    let array = DeviceSpec::Raid0(Raid0Spec { chunk_bytes: 4 << 12, members: vec![member; 2] });
    let array = || BlockDevice::new(&array, &QueueSpec::default(), 1).expect("valid");
    // Each of the members has four of them, and is done with one sooner than with all.
    assert!(eight_pages(array(), true).2 < eight_pages(array(), false).2);
}

#[test]
fn deadline_dispatches_in_sector_order() {
    let mut device = slow(QueueSpec::default());
    assert_eq!(ids(&mut device, &reads(&[500, 100, 300])), [100, 300, 500]);
}

#[test]
fn reads_go_before_writes_but_starve_them_only_twice() {
    let queue =
        QueueSpec { deadline: DeadlineSpec { fifo_batch: 2, ..DeadlineSpec::default() }, ..QueueSpec::default() };
    let mut device = slow(queue);
    let mut bios = reads(&[100, 200, 300, 400, 500, 600, 700, 800]);
    bios.extend([10_000, 20_000, 30_000].map(|s| bio(Op::Write, s, PAGE)));
    // Batches of 2: reads, reads (writes starved twice), writes, reads, reads, writes. The first read of all continues an
    // empty batch, so it is not counted as a choice: batch 0 is 100 and 200 with nothing starved, then two choices.
    let expected = [100, 200, 300, 400, 500, 600, 10_000, 20_000, 700, 800, 30_000];
    assert_eq!(ids(&mut device, &bios), expected);
}

#[test]
fn an_expired_request_begins_the_next_batch() {
    let deadline = DeadlineSpec { fifo_batch: 4, read_expire_ms: 10, ..DeadlineSpec::default() };
    let mut device = slow(QueueSpec { deadline, ..QueueSpec::default() });
    device.submit(Nanos::ZERO, bio(Op::Read, 5_000, PAGE));
    device.advance(Nanos::ZERO, &mut Vec::new());
    // Behind the head's place, so sector order reaches it last; everything else lies ahead.
    device.submit(Nanos(1), bio(Op::Read, 16, PAGE));
    let mut done = Vec::new();
    for i in 0..30 {
        device.submit(Nanos(2 + i), bio(Op::Read, 10_000 + i * 100, PAGE));
    }
    while let Some(at) = device.next_event() {
        device.advance(at, &mut done);
    }
    let place = done.iter().position(|c| c.id == 16).unwrap();
    // Its deadline is at 10 ms. Request n (from 0) is dispatched at n ms; batches of 4 begin at 0, 4, 8, 12 ms: at 12.
    assert_eq!(place, 12);
    // Without the deadline: last.
    assert_eq!(done.len(), 32);
}

#[test]
fn bios_merge_at_the_back_and_at_the_front_and_bridge_a_gap() {
    for scheduler in [SchedulerSpec::None, SchedulerSpec::MqDeadline] {
        let mut device = slow(QueueSpec { scheduler, ..QueueSpec::default() });
        // back, front: one request [92, 116) of 3 bios
        ids(&mut device, &reads(&[100, 108, 92]));
        let stats = device.stats().read;
        assert_eq!((stats.ios, stats.merges, stats.sectors), (1, 2, 24));
    }
    let mut device = slow(QueueSpec::default());
    // [100, 108) and [116, 124), then the gap between them: one request, two merges
    ids(&mut device, &reads(&[100, 116, 108]));
    let stats = device.stats().read;
    assert_eq!((stats.ios, stats.merges, stats.sectors), (1, 2, 24));
}

#[test]
fn reads_and_writes_do_not_merge() {
    let mut device = slow(QueueSpec::default());
    ids(&mut device, &[bio(Op::Read, 100, 8), bio(Op::Write, 108, 8)]);
    assert_eq!(device.stats().read.merges + device.stats().write.merges, 0);
}

#[test]
fn a_request_grows_to_max_sectors_kb_and_no_further() {
    for (max_sectors_kb, requests) in [(1280, 4), (512, 8)] {
        let mut device = slow(QueueSpec { max_sectors_kb, ..QueueSpec::default() });
        // 4 MiB in pages: 4096 / 1280 = 3.2, so 4; 4096 / 512 = 8
        let done = at_once(&mut device, Nanos::ZERO, sequential(Op::Write, 0, 8).take(1024));
        assert_eq!(done.len(), 1024);
        let stats = device.stats().write;
        assert_eq!((stats.ios, stats.merges, stats.sectors), (requests, 1024 - requests, 8192));
    }
}

#[test]
fn a_long_bio_is_split_and_completes_once() {
    let mut device = slow(QueueSpec { max_sectors_kb: 512, ..QueueSpec::default() });
    let done = at_once(&mut device, Nanos::ZERO, [bio(Op::Write, 0, 2500)]);
    assert_eq!(done.len(), 1);
    // 2500 sectors / 1024: three requests
    assert_eq!(device.stats().write.ios, 3);
}

#[test]
fn what_is_dispatched_does_not_merge() {
    let mut device = slow(QueueSpec::default());
    device.submit(Nanos::ZERO, bio(Op::Write, 0, 8));
    device.submit(Nanos(1), bio(Op::Write, 8, 8));
    drain(&mut device);
    assert_eq!(device.stats().write.ios, 2);
}

#[test]
fn writes_are_congested_from_113_requests_to_below_103() {
    let mut device = slow(QueueSpec { scheduler: SchedulerSpec::Cfq, ..QueueSpec::default() });
    // on: 128 - 16 + 1; off: 128 - 16 - 8 - 1
    for i in 0..112 {
        device.submit(Nanos::ZERO, bio(Op::Write, i * 1000, 8));
    }
    assert!(!device.congested(Op::Write));
    device.submit(Nanos::ZERO, bio(Op::Write, 500_000, 8));
    assert!(device.congested(Op::Write) && !device.congested(Op::Read));
    let mut done = Vec::new();
    while device.congested(Op::Write) {
        device.advance(device.next_event().unwrap(), &mut done);
    }
    assert_eq!(113 - done.len(), 102);
}

#[test]
fn synchronous_writes_count_with_the_reads_and_a_multi_queue_has_one_count() {
    for (scheduler, writes_wait) in [(SchedulerSpec::Cfq, false), (SchedulerSpec::MqDeadline, true)] {
        let mut device = slow(QueueSpec { nr_requests: 4, scheduler, ..QueueSpec::default() });
        for i in 0..4 {
            device.submit(Nanos::ZERO, Bio { sync: true, ..bio(Op::Write, i * 1000, 8) });
        }
        let refuses = |op| device.refuses(0, Nanos::ZERO, op, &Batch::default());
        assert!(refuses(Op::Read));
        assert_eq!(refuses(Op::Write), writes_wait);
    }
}

#[test]
fn busy_and_time_in_queue_are_those_of_diskstats() {
    let mut device = slow(QueueSpec::default());
    at_once(&mut device, Nanos::ZERO, reads(&[100, 200, 300]));
    // One after another, 1 ms and a transfer of 4096 B / 1 TB/s = 4 ns each: they end at 1, 2 and 3 ms.
    let stats = device.stats();
    assert_eq!(stats.busy, Nanos(3 * 1_000_004));
    assert_eq!(stats.read.time, Nanos(6 * 1_000_004));
    assert_eq!(stats.time_in_queue, stats.read.time);
}
