//! Injected faults, and bios that cannot succeed.

use crate::drive::*;
use blockdev::{DeviceSpec, Fault, IoError, Op, Raid0Spec, SchedulerSpec, SsdSpec};
use units::Nanos;

#[test]
fn the_next_requests_fail_and_then_none() {
    let mut ssd = device(DeviceSpec::Ssd(SsdSpec::sata_2015()), SchedulerSpec::None);
    ssd.inject_fault(Nanos::ZERO, Fault::Eio { requests: 2 });
    let done = closed_loop(&mut ssd, Nanos::ZERO, 1, random_pages(Op::Read, 1 << 20, 1).take(5));
    let failed: Vec<bool> = done.iter().map(|c| c.result == Err(IoError::Eio)).collect();
    assert_eq!(failed, [true, true, false, false, false]);
}

#[test]
fn every_bio_of_a_failed_request_fails() {
    let mut ssd = device(DeviceSpec::Ssd(SsdSpec::sata_2015()), SchedulerSpec::None);
    ssd.inject_fault(Nanos::ZERO, Fault::Eio { requests: 1 });
    let done = at_once(&mut ssd, Nanos::ZERO, sequential(Op::Write, 0, 8).take(4));
    assert_eq!(ssd.stats().write.ios, 1, "they merged");
    assert!(done.iter().all(|c| c.result == Err(IoError::Eio)));
}

#[test]
fn a_stall_holds_completions_and_dispatch() {
    for plugged in [true, false] {
        let mut ssd = device(DeviceSpec::Ssd(SsdSpec::sata_2015()), SchedulerSpec::None);
        ssd.submit(Nanos::ZERO, bio(Op::Read, 0, PAGE));
        ssd.advance(Nanos::ZERO, &mut Vec::new());
        ssd.inject_fault(Nanos::micros(10), Fault::Stall { duration: Nanos::secs(1) });
        ssd.submit(Nanos::micros(20), bio(Op::Read, 800, PAGE));
        if !plugged {
            ssd.unplug(Nanos::micros(20));
        }
        let done = drain(&mut ssd);
        let until = Nanos::secs(1) + Nanos::micros(10);
        assert_eq!(done[0].at, until);
        assert_eq!(done[1].at, until + Nanos::micros(100), "dispatched only then");
    }
}

#[test]
fn a_bio_past_the_end_fails_at_once() {
    let raid = DeviceSpec::Raid0(Raid0Spec::of(DeviceSpec::Ssd(SsdSpec::sata_2015()), 2));
    for spec in [DeviceSpec::Ssd(SsdSpec::sata_2015()), raid] {
        let mut device = device(spec, SchedulerSpec::None);
        let last = device.capacity_sectors() - 8;
        let bios = [bio(Op::Read, last + 1, 8), bio(Op::Read, u64::MAX, 8), bio(Op::Read, last, 8)];
        let done = at_once(&mut device, Nanos(3), bios);
        let results: Vec<_> = done.iter().map(|c| c.result).collect();
        assert_eq!(results, [Err(IoError::BeyondEnd), Err(IoError::BeyondEnd), Ok(())]);
        assert_eq!(done[0].at, Nanos(3));
    }
}
