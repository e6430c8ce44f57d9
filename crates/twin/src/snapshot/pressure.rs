//! `/proc/pressure/*` and the pressure files of a memory cgroup.
//!
//! Source: `psi_show()` (kernel/sched/psi.c), 6.12; the account is in `sim`.

use observe::{Pressure, PressureLine, Snapshot};
use rules::Era;
use sim::{Ctl, PsiGroup, Resource, Stall};

use crate::world::World;

/// One file: the pressure on a group for want of a resource.
pub(crate) fn pressure(ctl: &mut Ctl<World>, group: PsiGroup, resource: Resource) -> Pressure {
    let [some, full] = ctl.pressure(group, resource).map(line);
    Pressure { some, full: Some(full) }
}

/// The files of the system, where the kernel has them as they are here.
pub(crate) fn add_pressure(snapshot: &mut Snapshot, ctl: &mut Ctl<World>, era: Era) {
    if era == Era::V6_12 {
        let mut of = |resource| Some(pressure(ctl, PsiGroup::SYSTEM, resource));
        snapshot.pressure_cpu = of(Resource::Cpu);
        snapshot.pressure_io = of(Resource::Io);
        snapshot.pressure_memory = of(Resource::Memory);
    }
}

fn line(stall: Stall) -> PressureLine {
    // `LOAD_INT()` and `LOAD_FRAC()`: two decimals, cut.
    let percent = |average: u64| ((average * 100) >> Stall::FRACTION_BITS) as f64 / 100.0;
    let [avg10_pct, avg60_pct, avg300_pct] = stall.averages.map(percent);
    PressureLine { avg10_pct, avg60_pct, avg300_pct, total_us: stall.total.0 / 1000 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    #[test]
    fn averages_are_cut_to_two_decimals_and_totals_to_microseconds() {
        // 12.3456 % in fixed point: 25283 / 2048 = 12.3452...
        let stall = Stall { averages: [25_283, 2_047, 100 << Stall::FRACTION_BITS], total: Nanos(1_999_999) };
        let line = line(stall);
        assert_eq!((line.avg10_pct, line.avg60_pct, line.avg300_pct, line.total_us), (12.34, 0.99, 100.0, 1999));
    }
}
