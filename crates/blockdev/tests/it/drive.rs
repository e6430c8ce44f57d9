//! Ways to drive a device.

use blockdev::{Bio, BlockDevice, Completion, DeviceSpec, Op, QueueSpec, SchedulerSpec};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use units::Nanos;

/// Sectors in 4 KiB.
pub(crate) const PAGE: u32 = 8;

pub(crate) fn device(spec: DeviceSpec, scheduler: SchedulerSpec) -> BlockDevice {
    let queue = QueueSpec { scheduler, ..QueueSpec::default() };
    BlockDevice::new(&spec, &queue, 1).expect("valid")
}

pub(crate) fn bio(op: Op, sector: u64, sectors: u32) -> Bio {
    Bio { id: sector, op, sector, sectors, sync: op == Op::Read, context: 0, meta: false }
}

/// Runs until the device is at rest.
pub(crate) fn drain(device: &mut BlockDevice) -> Vec<Completion> {
    let mut done = Vec::new();
    while let Some(at) = device.next_event() {
        device.advance(at, &mut done);
    }
    done
}

/// Submits everything at one instant as one plug, and runs until the device is at rest.
pub(crate) fn at_once(device: &mut BlockDevice, now: Nanos, bios: impl IntoIterator<Item = Bio>) -> Vec<Completion> {
    for bio in bios {
        device.submit(now, bio);
    }
    drain(device)
}

/// Keeps `depth` bios outstanding from `start` until `bios` are used up.
pub(crate) fn closed_loop(
    device: &mut BlockDevice,
    start: Nanos,
    depth: usize,
    bios: impl IntoIterator<Item = Bio>,
) -> Vec<Completion> {
    let mut bios = bios.into_iter();
    let mut all = Vec::new();
    for bio in bios.by_ref().take(depth) {
        device.submit(start, bio);
    }
    let mut done = Vec::new();
    while let Some(at) = device.next_event() {
        device.advance(at, &mut done);
        for completion in done.drain(..) {
            if let Some(bio) = bios.next() {
                device.submit(at, bio);
            }
            all.push(completion);
        }
    }
    all
}

/// When the last one completed.
pub(crate) fn end(done: &[Completion]) -> Nanos {
    done.last().expect("something completed").at
}

/// Mean time from submission to completion in ns.
pub(crate) fn mean_latency(done: &[Completion]) -> f64 {
    let sum: u64 = done.iter().map(|c| (c.at - c.submitted).0).sum();
    sum as f64 / done.len() as f64
}

/// Bios of 4 KiB at uniformly random aligned places below `sectors`.
pub(crate) fn random_pages(op: Op, sectors: u64, seed: u64) -> impl Iterator<Item = Bio> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..).map(move |id| {
        let sector = rng.random_range(0..sectors / u64::from(PAGE)) * u64::from(PAGE);
        Bio { id, ..bio(op, sector, PAGE) }
    })
}

/// Adjacent bios of `sectors` each, from sector `from`.
pub(crate) fn sequential(op: Op, from: u64, sectors: u32) -> impl Iterator<Item = Bio> {
    (0..).map(move |i: u64| bio(op, from + i * u64::from(sectors), sectors))
}

/// Whether `actual` lies within `percent` of `expected`.
pub(crate) fn assert_near(actual: f64, expected: f64, percent: f64) {
    let off = (actual / expected - 1.0) * 100.0;
    assert!(off.abs() <= percent, "{actual} is {off:+.2} % off {expected}, more than {percent} %");
}
