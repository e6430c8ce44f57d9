//! Counters over time: `/proc/vmstat`, fragmentation events, and the free pages of each zone by migratetype.

use mm::stat::ExtfragEvent;
use mm::{MigrateType, Mm};
use observe::Series;
use rules::Era;
use units::Nanos;

/// Adds a reading to a series, which gets its columns with the first one.
pub(crate) fn sample(series: &mut Series, mm: &Mm, era: Era, now: Nanos) {
    let reading = reading(mm, era);
    if series.columns().is_empty() {
        *series = Series::new(reading.iter().map(|(name, _)| name.clone()).collect());
    }
    series.push(now, reading.into_iter().map(|(_, value)| value).collect());
}

fn reading(mm: &Mm, era: Era) -> Vec<(String, u64)> {
    let vmstat = super::counters::vmstat(mm, era);
    let mut reading: Vec<_> = vmstat.iter().map(|(name, value)| (name.to_string(), value)).collect();
    for event in [ExtfragEvent::Unmovable, ExtfragEvent::Movable, ExtfragEvent::Reclaimable] {
        reading.push((format!("extfrag_{event:?}").to_lowercase(), mm.stat.extfrag(event)));
    }
    for zone in &mm.zones {
        let counts = mm.free_counts(zone.id);
        for migratetype in MigrateType::ALL {
            let free = counts.iter().enumerate().map(|(order, types)| types[migratetype as usize] << order).sum();
            let name = format!("free_{}_{}_{}", zone.node.0, zone.kind.name(), migratetype.name());
            reading.push((name.to_lowercase(), free));
        }
    }
    reading
}
