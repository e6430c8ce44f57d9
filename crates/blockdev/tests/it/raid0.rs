//! Stripes.

use crate::drive::*;
use blockdev::{BlockDevice, DeviceSpec, Fault, HddSpec, IoError, Op, Raid0Spec, SchedulerSpec, SsdSpec};
use units::Nanos;

fn array(member: DeviceSpec, members: usize, chunk_bytes: u64) -> BlockDevice {
    let spec = Raid0Spec { chunk_bytes, ..Raid0Spec::of(member, members) };
    device(DeviceSpec::Raid0(spec), SchedulerSpec::None)
}

#[test]
fn a_bio_is_cut_at_chunks_and_pieces_on_one_member_merge_again() {
    let mut raid = array(DeviceSpec::Ssd(SsdSpec::sata_2015()), 2, 64 << 10);
    // 128 sectors to a chunk. [64, 64 + 640) covers half of chunk 0, chunks 1 to 4, half of chunk 5:
    // member 0 gets 64 + 128 + 128 (chunks 0, 2, 4), member 1 gets 128 + 128 + 64 (1, 3, 5), adjacent on each.
    let done = at_once(&mut raid, Nanos::ZERO, [bio(Op::Read, 64, 640)]);
    assert_eq!(done.len(), 1);
    for member in raid.member_stats() {
        assert_eq!((member.read.sectors, member.read.ios, member.read.merges), (320, 1, 2));
    }
    let whole = raid.stats().read;
    assert_eq!((whole.sectors, whole.ios, whole.merges), (640, 1, 0));
    // Two halves of 320 sectors at 540 MB/s side by side: 89.715 + 2.7 us + 163840 / 540e6
    assert_eq!(end(&done), Nanos(89_715 + 2_700 + 303_407));
}

#[test]
fn sequential_reads_scale_with_the_members() {
    let rate = |members| {
        let mut raid = array(DeviceSpec::Hdd(HddSpec::seven_two_k_2010s()), members, 64 << 10);
        let done = closed_loop(&mut raid, Nanos::ZERO, 8, sequential(Op::Read, 0, 2048).take(1000));
        1000.0 * 1_048_576.0 / end(&done).as_secs_f64()
    };
    let (one, four) = (rate(1), rate(4));
    assert_near(one, 150e6, 1.0);
    assert_near(four, 600e6, 3.0); // the first positioning counts four times as much
}

#[test]
fn one_failed_piece_fails_the_bio() {
    let mut raid = array(DeviceSpec::Ssd(SsdSpec::sata_2015()), 2, 64 << 10);
    raid.inject_fault(Nanos::ZERO, Fault::Eio { requests: 1 });
    let done = at_once(&mut raid, Nanos::ZERO, [bio(Op::Read, 0, 256)]);
    assert_eq!(done[0].result, Err(IoError::Eio));
}

#[test]
fn a_flush_goes_to_every_member() {
    let mut raid = array(DeviceSpec::Ssd(SsdSpec::sata_2015()), 3, 64 << 10);
    let done = at_once(&mut raid, Nanos::ZERO, [bio(Op::Flush, 0, 0)]);
    assert_eq!(end(&done), Nanos(500_000));
    assert!(raid.member_stats().iter().all(|m| m.flush.ios == 1));
}
