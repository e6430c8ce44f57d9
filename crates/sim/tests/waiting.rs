//! Sleeping, waiting, waking, timeouts, killing, joining, deadlocks.

mod common;

use common::{Event, Why, anywhere, expected, lines, machine, note};
use sim::{Class, RunEnd, Wake};
use units::Nanos;

#[test]
fn waiters_are_woken_first_come_first_served() {
    let mut sim = machine(4);
    let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
    for name in ["a", "b", "c"] {
        let options = anywhere(&mut sim, name);
        sim.spawn(options, move |ctx| async move {
            ctx.wait(queue, Why::Signal).await;
            note(&ctx, name);
        });
    }
    let options = anywhere(&mut sim, "waker");
    sim.spawn(options, move |ctx| async move {
        ctx.sleep(Why::Nap, Nanos(10)).await;
        assert!(ctx.with(|_, ctl| ctl.has_waiters(queue)));
        assert!(ctx.with(|_, ctl| ctl.wake_one(queue)));
        ctx.sleep(Why::Nap, Nanos(10)).await;
        assert_eq!(ctx.with(|_, ctl| ctl.wake_all(queue)), 2);
        assert!(!ctx.with(|_, ctl| ctl.wake_one(queue)));
        assert!(!ctx.with(|_, ctl| ctl.has_waiters(queue)));
    });
    sim.run().unwrap();
    assert_eq!(lines(&sim), expected(&[(10, "a"), (20, "b"), (20, "c")]));
}

#[test]
fn a_wake_up_takes_effect_at_the_wakers_time() {
    let mut sim = machine(2);
    let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
    let options = anywhere(&mut sim, "waiter");
    sim.spawn(options, move |ctx| async move {
        ctx.wait(queue, Why::Signal).await;
        note(&ctx, "woken");
    });
    let options = anywhere(&mut sim, "waker");
    sim.spawn(options, move |ctx| async move {
        ctx.charge(Nanos(40));
        ctx.with(|_, ctl| ctl.wake_one(queue));
        ctx.charge(Nanos(60));
    });
    sim.run().unwrap();
    assert_eq!(lines(&sim), expected(&[(40, "woken")]));
    assert_eq!(sim.now(), Nanos(100));
}

/// The waiter's slice lasts until 100; it registers in it; the wake-up comes at 40.
#[test]
fn a_wake_up_within_the_slice_that_registered_is_not_lost() {
    let mut sim = machine(2);
    let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
    let options = anywhere(&mut sim, "waiter");
    sim.spawn(options, move |ctx| async move {
        ctx.charge(Nanos(100));
        ctx.wait(queue, Why::Signal).await;
        note(&ctx, "woken");
        assert_eq!(ctx.wait_timeout(queue, Why::Signal, Nanos(5)).await, Wake::TimedOut);
        note(&ctx, "timed out");
    });
    sim.with_world(|_, ctl| ctl.schedule_at(Nanos(40), Class::Device, Event::WakeOne(queue)));
    sim.run().unwrap();
    let want = [(100, "woken"), (105, "timed out")];
    assert_eq!(lines(&sim), expected(&want));
}

/// As above, but the wake-up is itself issued in a slice, before and after the waiter's ends at 100.
#[test]
fn a_delayed_wake_up_is_not_lost_on_either_side_of_the_slices_end() {
    for (issued, woken) in [(40, 100), (100, 100), (150, 150)] {
        let mut sim = machine(2);
        let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
        let options = anywhere(&mut sim, "waiter");
        sim.spawn(options, move |ctx| async move {
            ctx.charge(Nanos(100));
            ctx.wait(queue, Why::Signal).await;
            note(&ctx, "woken");
        });
        let options = anywhere(&mut sim, "waker");
        sim.spawn(options, move |ctx| async move {
            ctx.charge(Nanos(issued));
            assert!(ctx.with(|_, ctl| ctl.wake_one(queue)));
            assert!(!ctx.with(|_, ctl| ctl.wake_one(queue)), "already off");
        });
        sim.run().unwrap();
        assert_eq!(lines(&sim), expected(&[(woken, "woken")]));
    }
}

#[test]
fn a_timeout_takes_the_waiter_off_the_queue_and_a_wake_up_cancels_the_timeout() {
    let mut sim = machine(1);
    let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
    let options = anywhere(&mut sim, "waiter");
    sim.spawn(options, move |ctx| async move {
        let wake = ctx.wait_timeout(queue, Why::Signal, Nanos(50)).await;
        assert_eq!((wake, ctx.now()), (Wake::TimedOut, Nanos(50)));
        assert!(!ctx.with(|_, ctl| ctl.wake_one(queue)));
        let wake = ctx.wait_timeout(queue, Why::Signal, Nanos(50)).await;
        assert_eq!((wake, ctx.now()), (Wake::Woken, Nanos(70)));
        // The timeout of 100 is stale by now and must not end this sleep.
        ctx.sleep(Why::Nap, Nanos(80)).await;
        assert_eq!(ctx.now(), Nanos(150));
    });
    sim.with_world(|_, ctl| ctl.schedule_at(Nanos(70), Class::Device, Event::WakeOne(queue)));
    sim.run().unwrap();
    assert_eq!(sim.now(), Nanos(150));
}

#[test]
fn of_a_timeout_and_a_wake_up_at_the_same_time_a_device_is_first_and_a_task_last() {
    for (class, want) in [(Class::Device, Wake::Woken), (Class::Task, Wake::TimedOut)] {
        let mut sim = machine(1);
        let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
        let options = anywhere(&mut sim, "waiter");
        let task = sim.spawn(options, move |ctx| async move {
            assert_eq!(ctx.wait_timeout(queue, Why::Signal, Nanos(50)).await, want);
        });
        sim.with_world(|_, ctl| ctl.schedule_at(Nanos(50), class, Event::WakeTask(task)));
        sim.run().unwrap();
    }
}

#[test]
fn many_cancelled_timeouts_neither_fill_the_heap_nor_disturb_the_others() {
    let mut sim = machine(2);
    let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
    let options = anywhere(&mut sim, "waiter");
    sim.spawn(options, move |ctx| async move {
        for _ in 0..5000 {
            let wake = ctx.wait_timeout(queue, Why::Signal, Nanos::secs(10)).await;
            assert_eq!(wake, Wake::Woken);
        }
    });
    let options = anywhere(&mut sim, "waker");
    sim.spawn(options, move |ctx| async move {
        for _ in 0..5000 {
            ctx.sleep(Why::Nap, Nanos(10)).await;
            assert!(ctx.with(|_, ctl| ctl.wake_one(queue)));
        }
    });
    assert_eq!(sim.run().unwrap(), RunEnd::AllEnded);
    assert_eq!(sim.now(), Nanos(50_000));
}

#[test]
fn wake_task_ends_a_sleep_and_kill_only_sets_a_flag() {
    let mut sim = machine(2);
    let options = anywhere(&mut sim, "sleeper");
    let sleeper = sim.spawn(options, |ctx| async move {
        ctx.sleep(Why::Nap, Nanos(1000)).await;
        assert_eq!((ctx.now(), ctx.killed()), (Nanos(10), false));
        ctx.sleep(Why::Nap, Nanos(1000)).await;
        assert_eq!((ctx.now(), ctx.killed()), (Nanos(1010), true));
    });
    let options = anywhere(&mut sim, "killer");
    sim.spawn(options, move |ctx| async move {
        ctx.sleep(Why::Nap, Nanos(10)).await;
        ctx.with(|_, ctl| ctl.wake_task(sleeper));
        ctx.sleep(Why::Nap, Nanos(10)).await;
        ctx.with(|_, ctl| ctl.kill(sleeper));
        assert!(ctx.with(|_, ctl| ctl.killed(sleeper)));
        assert!(!ctx.killed());
    });
    sim.run().unwrap();
}

#[test]
fn join_waits_for_the_end_of_the_last_slice() {
    let mut sim = machine(3);
    let options = anywhere(&mut sim, "parent");
    let child_options = anywhere(&mut sim, "child");
    sim.spawn(options, |ctx| async move {
        ctx.charge(Nanos(5));
        let child = ctx.spawn(child_options, |ctx| async move {
            note(&ctx, "child begins");
            ctx.sleep(Why::Nap, Nanos(10)).await;
            ctx.charge(Nanos(20));
        });
        ctx.join(child, Why::Child).await;
        note(&ctx, "joined");
        ctx.join(child, Why::Child).await;
        note(&ctx, "joined again");
    });
    sim.run().unwrap();
    let want = [(5, "child begins"), (35, "joined"), (35, "joined again")];
    assert_eq!(lines(&sim), expected(&want));
}

#[test]
fn a_deadlock_names_every_blocked_task_its_reason_and_since_when() {
    let mut sim = machine(2);
    let queue = sim.with_world(|_, ctl| ctl.new_wait_queue());
    let options = anywhere(&mut sim, "kswapd0").daemon();
    sim.spawn(options, move |ctx| async move {
        ctx.wait(queue, Why::Signal).await;
    });
    let options = anywhere(&mut sim, "writer");
    let writer = sim.spawn(options, move |ctx| async move {
        ctx.charge(Nanos(30));
        ctx.wait(queue, Why::Signal).await;
    });
    let options = anywhere(&mut sim, "parent");
    sim.spawn(options, move |ctx| async move {
        ctx.join(writer, Why::Child).await;
    });
    let options = anywhere(&mut sim, "done");
    sim.spawn(options, |ctx| async move { ctx.sleep(Why::Nap, Nanos(50)).await });
    let deadlock = sim.run().unwrap_err();
    assert_eq!(deadlock.blocked.len(), 3);
    assert_eq!(
        deadlock.to_string(),
        "deadlock at 50 ns: no event is left\n  \
         task 0 kswapd0 (daemon): Signal since 0 ns\n  \
         task 1 writer: Signal since 30 ns\n  \
         task 2 parent: Child since 0 ns"
    );
}
