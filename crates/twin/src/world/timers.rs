//! When timers end.
//!
//! Rule: a timer is set in jiffies and ends with a tick. Until 4.7 that was the last of its jiffies, so that one of a single jiffy ended with the next
//! tick. Since, a timer never ends early: it ends one tick later, and one of 63 jiffies or more with the next but one turn of a hand that goes by 8 jiffies, by
//! 64 from 504 on, and so on.
//! Source: `internal_add_timer()`, `cascade()` (kernel/timer.c), `schedule_timeout()`; 3.1. `calc_index()`, `calc_wheel_index()`
//! (kernel/time/timer.c); 4.20, 6.12.
//! Since/until: [`TimerWheel`].
//! Abstracted: the ticks of all CPUs come at once, and on time. The slack of `mod_timer()` (one jiffy of 256, until 4.7). What a process sleeps by itself is
//! not rounded (high resolution timers).

use rules::TimerWheel;
use sim::{Ctl, WaitQueueId, Wake};
use units::Nanos;

use super::World;
use crate::reason::SleepReason;
use crate::task::Task;

/// `jiffies` at the start: 300 s before it wraps, of 32 bits (`INITIAL_JIFFIES`).
const INITIAL_S: u64 = 300;
/// Jiffies that the finest hand of the wheel goes round in, less one (`LVL_START(1)`).
const LEVEL_START: u64 = 63;
/// Each hand's turn takes so many bits more than that of the one before (`LVL_CLK_SHIFT`).
const LEVEL_SHIFT: u32 = 3;
/// The coarsest hand (`LVL_DEPTH` - 1, of `HZ` above 100).
const LAST_LEVEL: u32 = 8;

/// Ticks from the last one until a timer ends that is set at `jiffies` for so many of them.
fn ticks_until_end(wheel: TimerWheel, jiffies: u64, timeout: u64) -> u64 {
    match wheel {
        TimerWheel::Cascading => timeout.max(1),
        TimerWheel::NonCascading => {
            let level =
                (0..LAST_LEVEL).find(|level| timeout < LEVEL_START << (level * LEVEL_SHIFT)).unwrap_or(LAST_LEVEL);
            let shift = level * LEVEL_SHIFT;
            ((((jiffies + timeout) >> shift) + 1) << shift) - jiffies
        }
    }
}

impl World {
    /// How long from now a timer of the kernel takes.
    fn timer(&self, ctl: &Ctl<World>, timeout: Nanos) -> Nanos {
        let (tick, since) = self.ticks;
        let since_boot = ctl.now().0 + since.0;
        let jiffies = (1 << 32) - INITIAL_S * (Nanos::secs(1).0 / tick.0) + since_boot / tick.0;
        let ticks = ticks_until_end(self.mm.rules.timer_wheel, jiffies, timeout.0.div_ceil(tick.0));
        Nanos(ticks * tick.0 - since_boot % tick.0)
    }

    /// When a timer of the kernel ends that is set now for `at`.
    pub(super) fn timer_end(&self, ctl: &Ctl<World>, at: Nanos) -> Nanos {
        let timeout = at.max(ctl.now()).since(ctl.now());
        Nanos(ctl.now().0 + self.timer(ctl, timeout).0)
    }
}

impl Task {
    /// Sleeps for so many jiffies (`schedule_timeout()`), given as a time, unless woken by name.
    pub(crate) async fn schedule_timeout(&self, reason: SleepReason, timeout: Nanos) {
        let timeout = self.ctx.with(|world, ctl| world.timer(ctl, timeout));
        self.ctx.sleep(reason, timeout).await;
    }

    /// Sleeps until woken, but not longer than so many jiffies (`wait_event_timeout()`), given as a time.
    pub(crate) async fn wait_timeout(&self, queue: WaitQueueId, reason: SleepReason, timeout: Nanos) -> Wake {
        let timeout = self.ctx.with(|world, ctl| world.timer(ctl, timeout));
        self.ctx.wait_timeout(queue, reason, timeout).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_ended_with_its_last_jiffy_and_ends_a_jiffy_later_since() {
        for jiffies in [0, 7, 1_000_003] {
            let ends = |wheel, timeouts: [u64; 4]| timeouts.map(|timeout| ticks_until_end(wheel, jiffies, timeout));
            assert_eq!(ends(TimerWheel::Cascading, [0, 1, 25, 1250]), [1, 1, 25, 1250]);
            assert_eq!(ends(TimerWheel::NonCascading, [0, 1, 25, 62]), [1, 2, 26, 63]);
        }
    }

    #[test]
    fn a_long_timer_waits_for_the_turn_of_a_coarser_hand() {
        let end = |jiffies, timeout| jiffies + ticks_until_end(TimerWheel::NonCascading, jiffies, timeout);
        // By 8 jiffies from 63 on, by 64 from 504 on, by 512 from 4032 on.
        assert_eq!([end(0, 63), end(0, 64), end(1, 63), end(3, 503)], [64, 72, 72, 512]);
        assert_eq!([end(0, 504), end(0, 512), end(8, 1250)], [512, 576, 1280]);
        assert_eq!([end(0, 4032), end(100, 7500)], [4096, 7680]);
    }

    proptest::proptest! {
        #[test]
        fn no_timer_is_early_and_none_is_late_by_more_than_an_eighth(jiffies in 0u64..1 << 33, timeout in 0u64..1_000_000) {
            let ticks = ticks_until_end(TimerWheel::NonCascading, jiffies, timeout);
            proptest::prop_assert!(ticks > timeout);
            proptest::prop_assert!(ticks <= timeout + (timeout / 7).max(1), "{ticks} for {timeout}");
        }
    }
}
