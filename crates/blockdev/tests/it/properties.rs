//! What holds for every device, queue and load.

use blockdev::*;
use proptest::prelude::*;
use units::Nanos;

const SECTORS: u64 = 1 << 17; // 64 MiB, so that places collide

fn leaf() -> impl Strategy<Value = DeviceSpec> {
    let throttle = prop_oneof![
        3 => Just(None),
        1 => Just(Some(ThrottleSpec {
            by: ThrottleKind::Qemu,
            bytes_per_s: Some(50_000_000),
            iops: Some(2000),
            burst_ms: 10,
        })),
        1 => Just(Some(ThrottleSpec {
            by: ThrottleKind::IoMax,
            bytes_per_s: Some(50_000_000),
            iops: None,
            burst_ms: 100,
        })),
    ];
    (0..6u8, throttle).prop_map(|(kind, throttle)| {
        let capacity_bytes = SECTORS * 512;
        let hdd = HddSpec { capacity_bytes, throttle: throttle.clone(), ..HddSpec::seven_two_k_2010s() };
        let ssd = SsdSpec { capacity_bytes, throttle: throttle.clone(), ..SsdSpec::sata_2015() };
        match kind {
            0 => DeviceSpec::Hdd(hdd),
            1 => DeviceSpec::Hdd(HddSpec { write_cache_bytes: 64 << 10, write_cache_entries: 4, ..hdd }),
            2 => DeviceSpec::Ssd(ssd),
            3 => {
                let gc = Some(GcSpec { interval_bytes: 1 << 20, pause_ns: 5_000_000 });
                DeviceSpec::Ssd(SsdSpec { gc, flush_alone: false, channels: 2, ..ssd })
            }
            4 => DeviceSpec::Ram(RamSpec { throttle, ..RamSpec::ddr4(capacity_bytes) }),
            _ => DeviceSpec::Usb(UsbSpec { capacity_bytes, throttle, ..UsbSpec::usb2_stick() }),
        }
    })
}

fn spec() -> impl Strategy<Value = DeviceSpec> {
    prop_oneof![
        3 => leaf(),
        1 => prop::collection::vec(leaf(), 1..4)
            .prop_map(|members| DeviceSpec::Raid0(Raid0Spec { chunk_bytes: 64 << 10, members })),
    ]
}

fn queue() -> impl Strategy<Value = QueueSpec> {
    let schedulers = [SchedulerSpec::None, SchedulerSpec::MqDeadline, SchedulerSpec::Cfq];
    (prop::sample::select(schedulers.to_vec()), prop_oneof![Just(16), Just(512), Just(1280)], 4..200u32).prop_map(
        |(scheduler, max_sectors_kb, nr_requests)| QueueSpec {
            scheduler,
            max_sectors_kb,
            nr_requests,
            ..QueueSpec::default()
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Submit { gap_us: u64, op: Op, page: u64, pages: u32, sync: bool, context: u32 },
    Fault(Fault),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![5 => Just(Op::Read), 5 => Just(Op::Write), 1 => Just(Op::Flush)];
    let gap = prop_oneof![4 => Just(0), 4 => 1..200u64, 1 => 1000..50_000u64];
    let page = prop_oneof![2 => 0..64u64, 1 => 0..SECTORS / 8];
    let pages = prop_oneof![4 => 1..4u32, 1 => 4..600u32];
    let who = (any::<bool>(), 0..4u32);
    let submit = (gap, op, page, pages, who).prop_map(|(gap_us, op, page, pages, (sync, context))| Step::Submit {
        gap_us,
        op,
        page,
        pages,
        sync,
        context,
    });
    let stall = (0..100u64).prop_map(|ms| Step::Fault(Fault::Stall { duration: Nanos::millis(ms) }));
    let eio = (1..4u32).prop_map(|requests| Step::Fault(Fault::Eio { requests }));
    prop::collection::vec(prop_oneof![20 => submit, 1 => stall, 1 => eio], 1..200)
}

/// Runs the steps, taking completions at every event or only now and then.
fn run(spec: &DeviceSpec, queue: &QueueSpec, steps: &[Step], eager: bool) -> (Vec<Completion>, BlockDevice) {
    let mut device = BlockDevice::new(spec, queue, 42).expect("valid");
    let (mut now, mut done) = (Nanos::ZERO, Vec::new());
    for (id, step) in (0..).zip(steps) {
        match *step {
            Step::Submit { gap_us, op, page, pages, sync, context } => {
                let next = now + Nanos::micros(gap_us);
                while let Some(at) = device.next_event().filter(|&at| eager && at < next) {
                    device.advance(at, &mut done);
                }
                now = next;
                let sectors = if op == Op::Flush { 0 } else { pages * 8 };
                device.submit(now, Bio { id, op, sector: page * 8, sectors, sync, context, meta: context == 3 });
            }
            Step::Fault(fault) => device.inject_fault(now, fault),
        }
    }
    while let Some(at) = device.next_event() {
        device.advance(if eager { at } else { at.max(now) + Nanos::millis(7) }, &mut done);
        now = now.max(at) + if eager { Nanos::ZERO } else { Nanos::millis(7) };
    }
    (done, device)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_bio_completes_once_and_the_counters_add_up(spec in spec(), queue in queue(), steps in steps()) {
        let (done, device) = run(&spec, &queue, &steps, true);
        let mut ids: Vec<u64> = done.iter().map(|c| c.id).collect();
        ids.sort_unstable();
        let submitted: Vec<u64> = (0..).zip(&steps).filter(|(_, s)| matches!(s, Step::Submit { .. })).map(|(id, _)| id).collect();
        prop_assert_eq!(ids, submitted);
        prop_assert!(done.iter().all(|c| c.at >= c.submitted));
        prop_assert!(done.is_sorted_by_key(|c| c.at), "time never goes back");

        let mut sectors = [0; 2];
        let capacity = device.capacity_sectors();
        for step in &steps {
            if let Step::Submit { op, page, pages, .. } = *step
                && op != Op::Flush && page * 8 + u64::from(pages * 8) <= capacity
            {
                sectors[usize::from(op == Op::Write)] += u64::from(pages * 8);
            }
        }
        let stats = device.stats();
        prop_assert_eq!([stats.read.sectors, stats.write.sectors], sectors);
        let times = [stats.read.time, stats.write.time, stats.flush.time];
        // More only if two requests that both waited became one, which counts once from then on.
        prop_assert!(stats.time_in_queue.0 >= times.iter().map(|t| t.0).sum());
        prop_assert!(stats.busy <= stats.time_in_queue);
        prop_assert_eq!((device.in_flight(), device.queued()), (0, 0));
        for member in device.member_stats() {
            prop_assert!(member.read.sectors <= stats.read.sectors);
        }
        prop_assert!(!device.congested(Op::Read) && !device.congested(Op::Write));
    }

    #[test]
    fn neither_a_second_run_nor_lazy_advancing_changes_anything(spec in spec(), queue in queue(), steps in steps()) {
        let (eager, device) = run(&spec, &queue, &steps, true);
        let (again, _) = run(&spec, &queue, &steps, true);
        prop_assert_eq!(&eager, &again);
        let (lazy, lazy_device) = run(&spec, &queue, &steps, false);
        prop_assert_eq!(&eager, &lazy);
        let (a, b) = (device.stats(), lazy_device.stats());
        prop_assert_eq!((a.read, a.write, a.flush, a.time_in_queue), (b.read, b.write, b.flush, b.time_in_queue));
    }
}
