//! Order of events, the clock, and how runs end.

mod common;

use common::{Event, Why, anywhere, expected, lines, machine, note};
use sim::{Class, RunEnd};
use units::Nanos;

#[test]
fn equal_times_go_by_class_and_then_by_sequence() {
    let mut sim = machine(1);
    sim.with_world(|_, ctl| {
        for (class, text) in [
            (Class::Task, "task 1"),
            (Class::Timer, "timer 1"),
            (Class::Device, "device 1"),
            (Class::Task, "task 2"),
            (Class::Device, "device 2"),
            (Class::Timer, "timer 2"),
        ] {
            ctl.schedule_at(Nanos(10), class, Event::Note(text));
        }
        ctl.schedule_after(Nanos(9), Class::Task, Event::Note("earlier"));
    });
    assert_eq!(sim.run().unwrap(), RunEnd::AllEnded);
    let want = [
        (9, "earlier"),
        (10, "device 1"),
        (10, "device 2"),
        (10, "timer 1"),
        (10, "timer 2"),
        (10, "task 1"),
        (10, "task 2"),
    ];
    assert_eq!(lines(&sim), expected(&want));
}

#[test]
#[should_panic(expected = "scheduled in the past")]
fn the_past_cannot_be_scheduled() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "late");
    sim.spawn(options, |ctx| async move {
        ctx.charge(Nanos(10));
        // The heap stands at 0, but this task is at 10 already.
        ctx.with(|_, ctl| ctl.schedule_at(Nanos(9), Class::Timer, Event::Note("never")));
    });
    let _ = sim.run();
}

#[test]
fn events_issued_in_a_slice_happen_at_the_issuers_time() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "issuer");
    sim.spawn(options, |ctx| async move {
        ctx.charge(Nanos(30));
        ctx.with(|_, ctl| ctl.schedule_after(Nanos(5), Class::Device, Event::Note("event")));
        ctx.charge(Nanos(30));
        ctx.sleep(Why::Nap, Nanos(100)).await;
        note(&ctx, "end");
    });
    sim.run().unwrap();
    // 30 + 5; and the sleep starts when 60 are charged.
    assert_eq!(lines(&sim), expected(&[(35, "event"), (160, "end")]));
}

#[test]
fn a_handlers_charge_is_interrupt_time_and_delays_no_task() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "napper");
    let task = sim.spawn(options, |ctx| async move {
        ctx.sleep(Why::Nap, Nanos(100)).await;
        ctx.charge(Nanos(7));
    });
    sim.with_world(|_, ctl| ctl.schedule_at(Nanos(99), Class::Device, Event::Charge(Nanos(50))));
    sim.run().unwrap();
    assert_eq!(sim.now(), Nanos(107));
    sim.with_world(|_, ctl| {
        assert_eq!(ctl.irq_time(), Nanos(50));
        assert_eq!(ctl.task_cpu_time(task), Nanos(7));
    });
}

#[test]
fn a_run_stops_at_its_deadline_and_can_go_on() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "napper");
    sim.spawn(options, |ctx| async move {
        ctx.sleep(Why::Nap, Nanos(100)).await;
        note(&ctx, "awake");
    });
    assert_eq!(sim.run_until(Nanos(99)).unwrap(), RunEnd::Deadline);
    assert_eq!(sim.now(), Nanos(99));
    assert_eq!(lines(&sim), []);
    assert_eq!(sim.run_until(Nanos(100)).unwrap(), RunEnd::AllEnded);
    assert_eq!(sim.into_world().lines, expected(&[(100, "awake")]));
}

#[test]
fn stop_ends_a_run_after_the_step_and_daemons_do_not_keep_it_alive() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "kswapd0").daemon();
    sim.spawn(options, |ctx| async move {
        loop {
            ctx.sleep(Why::Nap, Nanos(10)).await;
        }
    });
    let options = anywhere(&mut sim, "application");
    sim.spawn(options, |ctx| async move {
        ctx.sleep(Why::Nap, Nanos(1000)).await;
    });
    sim.with_world(|_, ctl| ctl.schedule_at(Nanos(55), Class::Timer, Event::Stop));
    assert_eq!(sim.run().unwrap(), RunEnd::Stopped);
    assert_eq!(sim.now(), Nanos(55));
    assert_eq!(sim.run().unwrap(), RunEnd::AllEnded);
    assert_eq!(sim.now(), Nanos(1000));
}

#[test]
#[should_panic(expected = "inside Ctx::with")]
fn reentry_is_reported() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "reenters");
    sim.spawn(options, |ctx| async move {
        ctx.with(|_, _| ctx.charge(Nanos(1)));
    });
    let _ = sim.run();
}

#[test]
#[should_panic(expected = "not of the simulation")]
fn a_foreign_future_is_reported() {
    let mut sim = machine(1);
    let options = anywhere(&mut sim, "stranger");
    sim.spawn(options, |_| std::future::pending());
    let _ = sim.run();
}
