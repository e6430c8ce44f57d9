//! A world that only keeps a log.
#![allow(dead_code, unreachable_pub)] // each test file is a crate of its own and uses a part of this

use sim::{CpuSet, CpuTopology, Ctl, Ctx, SchedParams, Sim, SpawnOptions, TaskId, WaitQueueId, World};
use units::{Nanos, NodeId};

/// Why a task of a test sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    Nap,
    Signal,
    Child,
}

/// What a test schedules.
pub enum Event {
    Note(&'static str),
    WakeOne(WaitQueueId),
    WakeTask(TaskId),
    Charge(Nanos),
    Stop,
}

#[derive(Default)]
pub struct Log {
    pub lines: Vec<(u64, String)>,
    /// Tasks that a CPU turned to.
    pub switches: Vec<TaskId>,
}

impl World for Log {
    type Event = Event;
    type Reason = Why;

    fn switched_to(&mut self, task: TaskId) {
        self.switches.push(task);
    }

    fn handle(&mut self, event: Event, ctl: &mut Ctl<Log>) {
        match event {
            Event::Note(text) => self.lines.push((ctl.now().0, text.to_owned())),
            Event::WakeOne(queue) => assert!(ctl.wake_one(queue)),
            Event::WakeTask(task) => ctl.wake_task(task),
            Event::Charge(time) => ctl.charge(time),
            Event::Stop => ctl.stop(),
        }
    }
}

pub type TestSim = Sim<Log>;

/// `nr_cpus` CPUs on one node, a quantum of 100 us, the scheduler's defaults.
pub fn machine(nr_cpus: usize) -> TestSim {
    machine_of(vec![NodeId(0); nr_cpus])
}

pub fn machine_of(nodes: Vec<NodeId>) -> TestSim {
    let params = SchedParams::linux_4_20(nodes.len());
    Sim::new(Log::default(), CpuTopology::new(nodes), Nanos::micros(100), params)
}

/// One with a CPU and these parameters.
pub fn machine_with(params: SchedParams) -> TestSim {
    Sim::new(Log::default(), CpuTopology::new(vec![NodeId(0)]), Nanos::micros(100), params)
}

/// The same with the scheduler of 6.12.
pub fn machine_6_12(nr_cpus: usize) -> TestSim {
    let topology = CpuTopology::new(vec![NodeId(0); nr_cpus]);
    Sim::new(Log::default(), topology, Nanos::micros(100), SchedParams::linux_6_12(nr_cpus))
}

/// A task that may run anywhere.
pub fn anywhere(sim: &mut TestSim, name: &str) -> SpawnOptions {
    let cpus = sim.with_world(|_, ctl| CpuSet::all(ctl.topology()));
    SpawnOptions::new(name, cpus)
}

/// Adds a line with the task's present time.
pub fn note(ctx: &Ctx<Log>, text: &str) {
    ctx.with(|log, ctl| log.lines.push((ctl.now().0, text.to_owned())));
}

pub fn lines(sim: &TestSim) -> Vec<(u64, String)> {
    sim.world().lines.clone()
}

/// What `lines` should give.
pub fn expected(lines: &[(u64, &str)]) -> Vec<(u64, String)> {
    lines.iter().map(|&(at, text)| (at, text.to_owned())).collect()
}

/// Uses the CPU for ever, in steps, with a preemption point after each.
pub async fn burn(ctx: Ctx<Log>, step: Nanos) {
    loop {
        ctx.charge(step);
        ctx.preempt_point().await;
    }
}

pub fn cpu_time(sim: &mut TestSim, task: TaskId) -> u64 {
    sim.with_world(|_, ctl| ctl.task_cpu_time(task).0)
}
