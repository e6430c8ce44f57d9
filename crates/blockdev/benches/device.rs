//! Wall time per bio, in the steady state: one iteration takes a completion and submits the next bio.
//!
//! Budget: 150 ns for the flash disk at low depth.

use blockdev::{
    Bio, BlockDevice, Completion, DeviceSpec, HddSpec, Op, QueueSpec, Raid0Spec, RamSpec, SchedulerSpec, SsdSpec,
};
use units::Nanos;

/// Shows allocations, if there are any.
#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

/// A device with `depth` bios outstanding.
struct Loop {
    device: BlockDevice,
    now: Nanos,
    done: Vec<Completion>,
    op: Op,
    sequential: bool,
    count: u64,
}

impl Loop {
    fn new(spec: DeviceSpec, scheduler: SchedulerSpec, op: Op, depth: u64, sequential: bool) -> Loop {
        let queue = QueueSpec { scheduler, ..QueueSpec::default() };
        let device = BlockDevice::new(&spec, &queue, 1).expect("valid");
        let mut this = Loop { device, now: Nanos::ZERO, done: Vec::new(), op, sequential, count: 0 };
        for _ in 0..depth {
            this.submit();
        }
        this
    }

    fn submit(&mut self) {
        // A multiplicative scatter over the device: cheap, and never twice the same place in a row.
        let pages = self.device.capacity_sectors() / 8;
        let page = if self.sequential { self.count } else { self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15) } % pages;
        self.device.submit(
            self.now,
            Bio { id: self.count, op: self.op, sector: page * 8, sectors: 8, sync: true, context: 0, meta: false },
        );
        self.count += 1;
    }

    /// Until `bios` more have completed.
    fn run(&mut self, bios: u64) {
        let mut completed = 0;
        while completed < bios {
            self.now = self.device.next_event().expect("bios are outstanding");
            self.device.advance(self.now, &mut self.done);
            for _ in 0..self.done.len() {
                self.submit();
                completed += 1;
            }
            self.done.clear();
        }
    }
}

/// Bios per iteration: what is reported is the time for this many.
const BIOS: u64 = 1000;

fn bench(bencher: divan::Bencher<'_, '_>, mut load: Loop) {
    load.run(10 * BIOS);
    bencher.counter(divan::counter::ItemsCount::new(BIOS)).bench_local(|| load.run(BIOS));
}

fn ssd() -> DeviceSpec {
    DeviceSpec::Ssd(SsdSpec::sata_2015())
}

#[divan::bench(args = [1, 4, 32, 128])]
fn ssd_none_random_read(bencher: divan::Bencher<'_, '_>, depth: u64) {
    bench(bencher, Loop::new(ssd(), SchedulerSpec::None, Op::Read, depth, false));
}

#[divan::bench(args = [1, 4, 32, 128])]
fn ssd_deadline_random_read(bencher: divan::Bencher<'_, '_>, depth: u64) {
    bench(bencher, Loop::new(ssd(), SchedulerSpec::MqDeadline, Op::Read, depth, false));
}

#[divan::bench(args = [1, 128])]
fn ssd_deadline_sequential_write(bencher: divan::Bencher<'_, '_>, depth: u64) {
    bench(bencher, Loop::new(ssd(), SchedulerSpec::MqDeadline, Op::Write, depth, true));
}

#[divan::bench(args = [1, 32])]
fn ram(bencher: divan::Bencher<'_, '_>, depth: u64) {
    bench(bencher, Loop::new(DeviceSpec::Ram(RamSpec::ddr4(1 << 30)), SchedulerSpec::None, Op::Read, depth, false));
}

#[divan::bench(args = [1, 32])]
fn hdd_random_read(bencher: divan::Bencher<'_, '_>, depth: u64) {
    let spec = DeviceSpec::Hdd(HddSpec::seven_two_k_2010s());
    bench(bencher, Loop::new(spec, SchedulerSpec::MqDeadline, Op::Read, depth, false));
}

#[divan::bench(args = [1, 32])]
fn hdd_random_write(bencher: divan::Bencher<'_, '_>, depth: u64) {
    let spec = DeviceSpec::Hdd(HddSpec::seven_two_k_2010s());
    bench(bencher, Loop::new(spec, SchedulerSpec::MqDeadline, Op::Write, depth, false));
}

#[divan::bench(args = [4])]
fn raid0_of_four_ssds(bencher: divan::Bencher<'_, '_>, depth: u64) {
    let spec = DeviceSpec::Raid0(Raid0Spec::of(ssd(), 4));
    bench(bencher, Loop::new(spec, SchedulerSpec::None, Op::Read, depth, false));
}
