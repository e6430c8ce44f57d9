//! Limits on bytes and operations per second.

use crate::drive::*;
use blockdev::{BlockDevice, DeviceSpec, Op, RamSpec, SchedulerSpec, SsdSpec, ThrottleKind, ThrottleSpec};
use units::Nanos;

fn limited(bytes_per_s: Option<u64>, iops: Option<u64>, burst_ms: u64) -> BlockDevice {
    let throttle = Some(ThrottleSpec { bytes_per_s, iops, burst_ms, by: ThrottleKind::Qemu });
    device(DeviceSpec::Ssd(SsdSpec { throttle, ..SsdSpec::sata_2015() }), SchedulerSpec::None)
}

#[test]
fn the_rate_in_bytes_is_exact() {
    let mut ssd = limited(Some(10_000_000), None, 0);
    let done = closed_loop(&mut ssd, Nanos::ZERO, 8, random_pages(Op::Read, 1 << 20, 1).take(10_001));
    // Each pays 4096 / 10e6 = 409.6 us before the next; 10,000 of them 4.096 s
    assert_eq!(end(&done) - done[0].at, Nanos(4_096_000_000));
}

#[test]
fn the_rate_in_operations_is_exact() {
    let mut ssd = limited(None, Some(300), 0);
    let done = closed_loop(&mut ssd, Nanos::ZERO, 8, random_pages(Op::Read, 1 << 20, 1).take(3001));
    // 3000 / 300 = 10 s, though 1 / 300 s is no whole number of ns
    let off = (end(&done) - done[0].at).0.abs_diff(10_000_000_000);
    assert!(off <= 1, "{off}");
}

#[test]
fn a_pause_buys_a_burst() {
    let mut ssd = limited(None, Some(1000), 100);
    let done = closed_loop(&mut ssd, Nanos::ZERO, 32, random_pages(Op::Read, 1 << 20, 1).take(301));
    // The level may be at most 100 when one passes: 101 pass at once, then 200 at 1 ms each.
    assert!(done[100].at < Nanos::millis(2), "{:?}", done[100].at);
    assert_near(end(&done).as_secs_f64(), 0.2 + 0.0001, 0.1);
}

#[test]
fn the_tighter_limit_binds() {
    let mut ssd = limited(Some(10_000_000), Some(1000), 0);
    let done = closed_loop(&mut ssd, Nanos::ZERO, 8, random_pages(Op::Read, 1 << 20, 1).take(1001));
    assert_eq!(end(&done) - done[0].at, Nanos::secs(1));
}

#[test]
fn what_the_limit_does_not_know_leaves_no_debt_and_waits_for_nobody() {
    let throttle = Some(ThrottleSpec { bytes_per_s: Some(1 << 20), iops: None, burst_ms: 0, by: ThrottleKind::IoMax });
    let mut ram = device(DeviceSpec::Ram(RamSpec { throttle, ..RamSpec::ddr4(1 << 30) }), SchedulerSpec::None);
    let mebibyte = 2048;
    ram.pass(Nanos::ZERO, Op::Write, mebibyte, false);
    assert_eq!(ram.room(Nanos::ZERO).write, (1 << 20) / 10, "a slice is left");
    ram.pass(Nanos::ZERO, Op::Write, mebibyte, true);
    assert_eq!(ram.room(Nanos::ZERO).write, 0);
    // More than the device and its queue take, at a place each.
    for page in 0..10_000 {
        ram.submit(Nanos::ZERO, bio(Op::Write, page * 16, PAGE));
    }
    ram.advance(Nanos(1), &mut Vec::new());
    let room = ram.room(Nanos(1));
    assert_eq!((room.write, room.exempt), (0, u64::MAX));
}
