//! Cost of the executor's basic steps, per step: `cargo bench -p sim`.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use sim::{CpuSet, CpuTopology, Ctl, Ctx, SchedParams, Sim, SpawnOptions, World};
use units::{Nanos, NodeId};

/// Steps per measured run: enough to hide setting up and ending it.
const STEPS: u64 = 100_000;

fn main() {
    divan::main();
}

struct Nothing;

impl World for Nothing {
    type Event = ();
    type Reason = ();

    fn handle(&mut self, (): (), _: &mut Ctl<Nothing>) {}
}

/// Measures `steps` steps of a simulation that `set_up` fills with tasks.
fn measure(bencher: Bencher, nr_cpus: usize, set_up: impl Fn(&mut Sim<Nothing>, SpawnOptions) + Sync) {
    bencher
        .counter(ItemsCount::new(STEPS))
        .with_inputs(|| {
            let topology = CpuTopology::new(vec![NodeId(0); nr_cpus]);
            let options = SpawnOptions::new("bench", CpuSet::all(&topology));
            let params = SchedParams::linux_4_20(nr_cpus);
            let mut sim = Sim::new(Nothing, topology, Nanos::millis(1), params);
            set_up(&mut sim, options);
            sim
        })
        .bench_local_values(|mut sim| {
            sim.run().expect("no deadlock");
            sim
        });
}

/// The quantum is never used up.
#[divan::bench]
fn preempt_point_that_does_not_suspend(bencher: Bencher) {
    measure(bencher, 1, |sim, options| {
        sim.spawn(options, |ctx| async move {
            for _ in 0..STEPS {
                ctx.charge(black_box(Nanos(1)));
                ctx.preempt_point().await;
            }
        });
    });
}

#[divan::bench]
fn charge_through_with(bencher: Bencher) {
    measure(bencher, 1, |sim, options| {
        sim.spawn(options, |ctx| async move {
            for _ in 0..STEPS {
                ctx.with(|_, ctl| ctl.charge(black_box(Nanos(1))));
            }
        });
    });
}

#[divan::bench]
fn sleep_cycle(bencher: Bencher) {
    measure(bencher, 1, |sim, options| {
        sim.spawn(options, |ctx| async move {
            for _ in 0..STEPS {
                ctx.sleep((), Nanos(100)).await;
            }
        });
    });
}

/// The slice's end is an event too.
#[divan::bench]
fn sleep_cycle_with_charge(bencher: Bencher) {
    measure(bencher, 1, |sim, options| {
        sim.spawn(options, |ctx| async move {
            for _ in 0..STEPS {
                ctx.charge(Nanos(50));
                ctx.sleep((), Nanos(100)).await;
            }
        });
    });
}

/// Each of `STEPS` steps is one wake-up and one wait, on one side.
#[divan::bench(args = [0, 50])]
fn wake_pair(bencher: Bencher, charge: u64) {
    measure(bencher, 2, |sim, options| {
        let queues = sim.with_world(|_, ctl| [ctl.new_wait_queue(), ctl.new_wait_queue()]);
        let side = move |own: usize| {
            move |ctx: Ctx<Nothing>| async move {
                for _ in 0..STEPS / 2 {
                    if own == 1 {
                        ctx.wait(queues[1], ()).await;
                    }
                    ctx.with(|_, ctl| {
                        ctl.charge(Nanos(charge));
                        ctl.wake_one(queues[1 - own])
                    });
                    if own == 0 {
                        ctx.wait(queues[0], ()).await;
                    }
                }
            }
        };
        sim.spawn(options.clone(), side(1));
        sim.spawn(options, side(0));
    });
}

/// Each step uses up a quantum.
#[divan::bench(args = [1, 8])]
fn eight_tasks_round_robin(bencher: Bencher, nr_cpus: usize) {
    measure(bencher, nr_cpus, |sim, options| {
        for _ in 0..8 {
            sim.spawn(options.clone(), |ctx| async move {
                for _ in 0..STEPS / 8 {
                    ctx.charge(Nanos::millis(1));
                    ctx.preempt_point().await;
                }
            });
        }
    });
}
