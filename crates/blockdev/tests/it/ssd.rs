//! The flash disk.

use crate::drive::*;
use blockdev::{Bio, BlockDevice, DeviceSpec, GcSpec, Op, SchedulerSpec, SsdSpec};
use units::Nanos;

fn ssd(spec: SsdSpec) -> BlockDevice {
    device(DeviceSpec::Ssd(spec), SchedulerSpec::None)
}

fn iops(op: Op, depth: usize) -> f64 {
    let mut ssd = ssd(SsdSpec::sata_2015());
    let bios = random_pages(op, ssd.capacity_sectors(), 5).take(20_000);
    let done = closed_loop(&mut ssd, Nanos::ZERO, depth, bios);
    20_000.0 / end(&done).as_secs_f64()
}

#[test]
fn iops_are_those_of_the_data_sheet() {
    // Depth 1: 89.715 us + 2.7 us + 4096 / 540e6 (7.585 us) = 100 us
    assert_near(iops(Op::Read, 1), 10_000.0, 0.01);
    // Depth 32: the pipe, 1 / (2.7 + 7.585 us) = 97,229; 16 channels / 89.7 us would allow 178 k
    assert_near(iops(Op::Read, 32), 97_229.0, 0.2);
    // Depth 4: 4 / 100 us, for channels and pipe are seldom waited for
    assert_near(iops(Op::Read, 4), 40_000.0, 2.0);
    // 14.423 + 2.7 + 4096 / 520e6 (7.877 us) = 25 us; depth 32: 1 / 10.577 us
    assert_near(iops(Op::Write, 1), 40_000.0, 0.01);
    assert_near(iops(Op::Write, 32), 94_545.0, 0.2);
}

#[test]
fn channels_bound_the_iops() {
    let mut ssd = ssd(SsdSpec { channels: 2, ..SsdSpec::sata_2015() });
    let reads = random_pages(Op::Read, ssd.capacity_sectors(), 5).take(10_000);
    let done = closed_loop(&mut ssd, Nanos::ZERO, 32, reads);
    // 2 / 89.715 us
    assert_near(10_000.0 / end(&done).as_secs_f64(), 22_293.0, 0.1);
}

#[test]
fn sequential_rates_are_those_of_the_data_sheet() {
    for (op, rate) in [(Op::Read, 540e6), (Op::Write, 520e6)] {
        let mut ssd = ssd(SsdSpec::sata_2015());
        let done = closed_loop(&mut ssd, Nanos::ZERO, 8, sequential(op, 0, 1024).take(2000));
        // 2.7 us per request of 512 KiB, 0.97 ms, is 0.3 % less
        assert_near(2000.0 * 524_288.0 / end(&done).as_secs_f64(), rate, 0.4);
    }
}

#[test]
fn the_interface_bounds_the_rate() {
    let mut ssd = ssd(SsdSpec { interface_bytes_per_s: 300_000_000, ..SsdSpec::sata_2015() });
    let done = closed_loop(&mut ssd, Nanos::ZERO, 8, sequential(Op::Read, 0, 1024).take(2000));
    assert_near(2000.0 * 524_288.0 / end(&done).as_secs_f64(), 300e6, 0.4);
}

#[test]
fn garbage_collection_pauses_as_often_and_as_long_as_said() {
    let gc = GcSpec { interval_bytes: 10 << 20, pause_ns: 20_000_000 };
    let mut ssd = ssd(SsdSpec { gc: Some(gc), ..SsdSpec::sata_2015() });
    let writes = sequential(Op::Write, 0, 256).take(80_000); // 10,000 MiB
    let done = closed_loop(&mut ssd, Nanos::ZERO, 8, writes);
    // 10,000 MiB / 10 MiB = 1000 pauses of 20 ms = 20 s; 10,485.76 MB / 520 MB/s = 20.165 s; what completes together
    // is submitted together and merges to 1 MiB, so 10,000 x 2.7 us = 0.027 s. Uniform within half on either side: the
    // standard deviation of number and mean length are 0.289 / sqrt(1000) = 0.9 % each, 0.65 % of the sum.
    assert_near(end(&done).as_secs_f64(), 20.0 + 20.165 + 0.027, 2.0);
}

#[test]
fn a_flush_of_a_sata_drive_excludes_other_commands() {
    let flush_in_the_middle = |flush_alone| {
        let mut ssd = ssd(SsdSpec { flush_alone, ..SsdSpec::sata_2015() });
        ssd.submit(Nanos::ZERO, bio(Op::Read, 0, PAGE));
        ssd.advance(Nanos::ZERO, &mut Vec::new());
        ssd.submit(Nanos(1000), Bio { id: 1_000, ..bio(Op::Flush, 0, 0) });
        ssd.submit(Nanos(1000), bio(Op::Read, 8000, PAGE));
        let done = drain(&mut ssd);
        done.iter().map(|c| (c.id, c.at.0)).collect::<Vec<_>>()
    };
    // Alone: read 100 us, then flush 500 us, then read 100 us. A read is 89,715 + 2,700 + 7,585 = 100,000 ns.
    assert_eq!(flush_in_the_middle(true), [(0, 100_000), (1_000, 600_000), (8000, 700_000)]);
    // Queued: all overlap.
    assert_eq!(flush_in_the_middle(false), [(0, 100_000), (8000, 101_000 + 9_285), (1_000, 501_000)]);
}

#[test]
fn waiting_flushes_share_one() {
    let mut ssd = ssd(SsdSpec::sata_2015());
    for at in [0, 10, 20, 30] {
        ssd.submit(Nanos(at), bio(Op::Flush, 0, 0));
        ssd.advance(Nanos(at), &mut Vec::new());
    }
    let done = drain(&mut ssd);
    // The first takes 500 us; the other three share the next.
    let at: Vec<u64> = done.iter().map(|c| c.at.0).collect();
    assert_eq!(at, [500_000, 1_000_000, 1_000_000, 1_000_000]);
    assert_eq!((ssd.stats().flush.ios, ssd.stats().flush.merges), (2, 2));
}
