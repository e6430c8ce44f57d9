//! The USB stick, and the RAM disk.

use crate::drive::*;
use blockdev::{BlockDevice, DeviceSpec, Op, RamSpec, SchedulerSpec, UsbSpec};
use units::Nanos;

fn stick() -> BlockDevice {
    device(DeviceSpec::Usb(UsbSpec::usb2_stick()), SchedulerSpec::None)
}

#[test]
fn sequential_writes_run_at_the_sequential_rate() {
    let mut stick = stick();
    let done = closed_loop(&mut stick, Nanos::ZERO, 1, sequential(Op::Write, 0, 256).take(800));
    // 100 MiB / 8 MB/s + 800 x 0.2 ms + (25 - 5) erasures x 2 ms
    let expected = 104_857_600.0 / 8e6 + 800.0 * 0.2e-3 + 20.0 * 2e-3;
    assert_near(end(&done).as_secs_f64(), expected, 0.01);
}

#[test]
fn sequential_reads_run_at_the_read_rate() {
    let mut stick = stick();
    let done = closed_loop(&mut stick, Nanos::ZERO, 1, sequential(Op::Read, 0, 256).take(800));
    let expected = 104_857_600.0 / 25e6 + 800.0 * 0.7e-3;
    assert_near(end(&done).as_secs_f64(), expected, 0.01);
}

#[test]
fn a_random_write_costs_an_erase_block() {
    let mut stick = stick();
    let sectors = stick.capacity_sectors();
    let writes = random_pages(Op::Write, sectors, 11).take(2000);
    let done = closed_loop(&mut stick, Nanos::ZERO, 1, writes);
    // Before it and behind it the block's old content: (4 MiB - 4 KiB) / 32 MB/s = 130.94 ms; erase 2 ms; the write
    // 4096 / 8e6 = 0.512 ms; the command 0.2 ms. Five blocks are still open at the end.
    let each = (4_194_304.0 - 4096.0) / 32e6 + 2e-3 + 0.512e-3 + 0.2e-3;
    assert_near(end(&done).as_secs_f64() / 2000.0, each, 0.5);
}

#[test]
fn appending_to_the_open_blocks_is_cheap_and_one_stream_too_many_is_not() {
    let block = 8192; // sectors in 4 MiB
    let streams = |count: u64| {
        let mut stick = stick();
        let writes = (0..100 * count).map(|i| bio(Op::Write, (i % count) * block + i / count * 8, PAGE));
        let done = closed_loop(&mut stick, Nanos::ZERO, 1, writes);
        end(&done).as_secs_f64() / (100 * count) as f64
    };
    // 0.2 ms + 0.512 ms each
    assert_near(streams(5), 0.712e-3, 0.01);
    // Six: each write closes a block and opens another, so it costs the copy of a block: 131 + 2 ms
    assert!(streams(6) > 0.120);
}

#[test]
fn rewriting_a_place_reopens_its_block() {
    let mut stick = stick();
    let first = at_once(&mut stick, Nanos::ZERO, [bio(Op::Write, 0, PAGE)]);
    let start = end(&first);
    assert_eq!(start, Nanos(200_000 + 512_000));
    let again = at_once(&mut stick, start, [bio(Op::Write, 0, PAGE)]);
    // (4 MiB - 4 KiB) / 32 MB/s = 130.944 ms, erase 2 ms
    assert_eq!(end(&again) - start, Nanos(712_000 + 130_944_000 + 2_000_000));
}

#[test]
fn a_ram_disk_takes_latency_and_copy_whatever_else_is_under_way() {
    let mut ram = device(DeviceSpec::Ram(RamSpec::ddr4(1 << 30)), SchedulerSpec::MqDeadline);
    let done = at_once(&mut ram, Nanos(5), sequential(Op::Write, 0, 8).take(1000));
    // 1 us + 4096 / 8e9 = 0.512 us; bios neither queue nor merge
    assert!(done.iter().all(|c| c.at == Nanos(5 + 1512)));
    assert_eq!((ram.stats().write.ios, ram.stats().write.merges), (1000, 0));
    assert!(!ram.congested(Op::Write));
}
