//! Random small programs: what must hold whatever the tasks do, and that they do the same twice.

mod common;

use common::{Log, TestSim, Why, machine_of};
use proptest::prelude::*;
use sim::{CpuSet, Ctx, RunEnd, SpawnOptions, TaskId, WaitQueueId, Wake};
use units::{CpuId, Nanos, NodeId};

const QUEUES: usize = 2;

/// One thing that a task does.
#[derive(Clone, Debug)]
enum Op {
    Charge(u64),
    Sleep(u64),
    WaitTimeout(usize, u64),
    WakeOne(usize),
    WakeAll(usize),
    WakeTask(u32),
    Kill(u32),
    Preempt,
    Yield,
    Spawn(u64),
}

#[derive(Clone, Debug)]
struct Program {
    nice: i8,
    /// Anywhere, on a node, or on one CPU.
    place: u8,
    ops: Vec<Op>,
}

fn op() -> impl Strategy<Value = Op> {
    // Times are few and small, so that many things coincide; some exceed a quantum.
    let time = prop_oneof![0..5u64, Just(1_000), Just(60_000), Just(3_000_000)];
    prop_oneof![
        4 => time.clone().prop_map(Op::Charge),
        2 => time.clone().prop_map(Op::Sleep),
        3 => (0..QUEUES, time.clone()).prop_map(|(queue, time)| Op::WaitTimeout(queue, time)),
        2 => (0..QUEUES).prop_map(Op::WakeOne),
        1 => (0..QUEUES).prop_map(Op::WakeAll),
        1 => (0..6u32).prop_map(Op::WakeTask),
        1 => (0..6u32).prop_map(Op::Kill),
        3 => Just(Op::Preempt),
        1 => Just(Op::Yield),
        1 => time.prop_map(Op::Spawn),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let nice = prop_oneof![Just(0), -20..=19i8];
    (nice, 0..3u8, prop::collection::vec(op(), 0..30)).prop_map(|(nice, place, ops)| Program { nice, place, ops })
}

/// What a task did while it had a CPU: between `from` and `to`, on `cpu`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Stretch {
    task: TaskId,
    cpu: CpuId,
    from: Nanos,
    to: Nanos,
}

/// Keeps the stretches in the log, as text would be kept by other tests.
fn charge(ctx: &Ctx<Log>, time: u64) {
    let (cpu, from) = (ctx.cpu(), ctx.now());
    ctx.charge(Nanos(time));
    let line = format!("{} {} {}", ctx.task().0, cpu.0, ctx.now().0);
    ctx.with(|log, _| log.lines.push((from.0, line)));
}

async fn execute(ctx: Ctx<Log>, program: Program, queues: [WaitQueueId; QUEUES], cpus: CpuSet) {
    let mut last = ctx.now();
    for op in program.ops {
        let before = ctx.now();
        assert!(before >= last, "a task's time runs back");
        match op {
            Op::Charge(time) => charge(&ctx, time),
            Op::Sleep(time) => ctx.sleep(Why::Nap, Nanos(time)).await,
            Op::WaitTimeout(queue, time) => {
                let wake = ctx.wait_timeout(queues[queue], Why::Signal, Nanos(time)).await;
                assert!(wake == Wake::Woken || ctx.now() >= before + Nanos(time));
            }
            Op::WakeOne(queue) => {
                ctx.with(|_, ctl| assert_eq!(ctl.has_waiters(queues[queue]), ctl.wake_one(queues[queue])));
            }
            Op::WakeAll(queue) => {
                ctx.with(|_, ctl| ctl.wake_all(queues[queue]));
            }
            Op::WakeTask(task) => ctx.with(|_, ctl| {
                if ctl.tasks().count() > task as usize {
                    ctl.wake_task(TaskId(task));
                }
            }),
            Op::Kill(task) => ctx.with(|_, ctl| {
                if ctl.tasks().count() > task as usize {
                    ctl.kill(TaskId(task));
                }
            }),
            Op::Preempt => ctx.preempt_point().await,
            Op::Yield => ctx.yield_now().await,
            Op::Spawn(time) => {
                let options = SpawnOptions::new("child", cpus);
                let child = ctx.spawn(options, |ctx| async move { charge(&ctx, time) });
                ctx.join(child, Why::Child).await;
                assert!(ctx.now() >= before + Nanos(time));
            }
        }
        assert!(cpus.contains(ctx.cpu()), "a task leaves its CPUs");
        last = before;
    }
}

fn simulate(programs: &[Program], nodes: &[NodeId]) -> TestSim {
    let mut sim = machine_of(nodes.to_vec());
    let queues = sim.with_world(|_, ctl| [ctl.new_wait_queue(), ctl.new_wait_queue()]);
    for (number, program) in programs.iter().enumerate() {
        let home = CpuId((number % nodes.len()) as u16);
        let cpus = sim.with_world(|_, ctl| match program.place {
            0 => CpuSet::all(ctl.topology()),
            1 => CpuSet::of_node(ctl.topology(), nodes[home.index()]),
            _ => CpuSet::single(home),
        });
        let options = SpawnOptions::new("program", cpus).nice(program.nice);
        let program = program.clone();
        sim.spawn(options, move |ctx| execute(ctx, program, queues, cpus));
    }
    assert_eq!(sim.run().expect("every wait has a timeout"), RunEnd::AllEnded);
    sim
}

fn stretches(sim: &TestSim) -> Vec<Stretch> {
    let parse = |(from, line): &(u64, String)| {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        Stretch {
            task: TaskId(numbers[0] as u32),
            cpu: CpuId(numbers[1] as u16),
            from: Nanos(*from),
            to: Nanos(numbers[2]),
        }
    };
    sim.world().lines.iter().map(parse).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn programs_share_cpus_soundly_and_run_the_same_twice(
        programs in prop::collection::vec(program(), 1..6),
        nodes in prop_oneof![
            Just(vec![NodeId(0)]),
            Just(vec![NodeId(0), NodeId(0)]),
            Just(vec![NodeId(0), NodeId(1), NodeId(0)]),
        ],
    ) {
        let mut sim = simulate(&programs, &nodes);
        let trace = stretches(&sim);

        // A CPU runs one task at a time.
        for cpu in 0..nodes.len() as u16 {
            let mut on_cpu: Vec<&Stretch> = trace
                .iter()
                .filter(|stretch| stretch.cpu == CpuId(cpu) && stretch.to > stretch.from)
                .collect();
            on_cpu.sort_by_key(|stretch| stretch.from);
            for pair in on_cpu.windows(2) {
                prop_assert!(pair[0].to <= pair[1].from, "{:?} overlap", pair);
            }
        }

        // CPU time is what was charged, and fits in the time that there was.
        let charged: u64 = trace.iter().map(|stretch| stretch.to.0 - stretch.from.0).sum();
        let elapsed = sim.now();
        let by_task: u64 = sim.with_world(|_, ctl| ctl.tasks().map(|(_, _, _, time)| time.0).sum());
        prop_assert_eq!(by_task, charged);
        prop_assert!(charged <= elapsed.0 * nodes.len() as u64);

        let again = simulate(&programs, &nodes);
        prop_assert_eq!(again.now(), elapsed);
        prop_assert_eq!(stretches(&again), trace);
    }
}
