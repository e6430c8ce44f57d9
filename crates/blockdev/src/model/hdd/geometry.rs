//! Where a sector lies.
//!
//! **Rule.** Sectors follow one another along a spiral of tracks; zones of equal width have constant rates that fall
//! linearly from the outer to the inner one. A sector's place is a `position`: the time, at the zone's rate, from
//! sector 0. Position modulo the revolution is the angle, and the revolutions so far are tracks, `heads` of them
//! to a cylinder. Integers throughout, so that a transfer ends exactly where the next sector begins.
//! **Source.** Ruemmler & Wilkes 1994 (zones, skew).
//! **Abstracted.** Switches of head and track within a transfer are in the sustained rate: skew hides them.
//! **Omitted.** Spare sectors and remapping; serpentine order.

use super::spec::HddSpec;
use crate::bio::SECTOR_SIZE;
use crate::rate::Rate;
use units::Nanos;

#[derive(Clone, Debug)]
struct Zone {
    first_sector: u64,
    first_position: u64,
    rate: Rate,
}

/// The map from sectors to places.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    sectors: u64,
    revolution: u64,
    heads: u64,
}

impl Geometry {
    pub(super) fn new(spec: &HddSpec) -> Geometry {
        let sectors = spec.capacity_bytes / SECTOR_SIZE;
        let steps = (spec.zones - 1).max(1);
        let fall = spec.outer_bytes_per_s - spec.inner_bytes_per_s;
        let rates: Vec<u64> = (0..spec.zones).map(|zone| spec.outer_bytes_per_s - fall * zone / steps).collect();
        let total: u128 = rates.iter().copied().map(u128::from).sum();
        let mut zones = Vec::with_capacity(rates.len());
        let (mut below, mut first_position) = (0u128, 0);
        for rate in rates {
            let start = |share: u128| (u128::from(sectors) * share / total) as u64;
            let first_sector = start(below);
            below += u128::from(rate);
            let rate = Rate::bytes_per_s(rate);
            zones.push(Zone { first_sector, first_position, rate });
            first_position += rate.time(start(below) - first_sector).0;
        }
        Geometry { zones, sectors, revolution: 60_000_000_000 / spec.rpm, heads: spec.heads }
    }

    /// Sectors on the disk.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Time of a revolution in ns.
    pub(super) fn revolution(&self) -> u64 {
        self.revolution
    }

    /// Cylinders, at least 2.
    pub(super) fn cylinders(&self) -> u64 {
        (self.cylinder(self.position(self.sectors)) + 1).max(2)
    }

    /// The place of the beginning of `sector`; the end of the disk has one too.
    pub(super) fn position(&self, sector: u64) -> u64 {
        let zone = self.zones.partition_point(|z| z.first_sector <= sector) - 1;
        let zone = &self.zones[zone];
        zone.first_position + zone.rate.time(sector - zone.first_sector).0
    }

    /// The sector under the head at `position`, clamped to the end of the disk.
    pub(super) fn sector_at(&self, position: u64) -> u64 {
        let index = self.zones.partition_point(|z| z.first_position <= position).max(1) - 1;
        let zone = &self.zones[index];
        let end = self.zones.get(index + 1).map_or(self.sectors, |next| next.first_sector);
        let into = zone.rate.units(Nanos(position - zone.first_position));
        (zone.first_sector + into).min(end)
    }

    /// The cylinder of a position.
    pub(super) fn cylinder(&self, position: u64) -> u64 {
        position / self.revolution / self.heads
    }

    /// Rotation from the angle at `phase` (ns since some zero) to that of `position`.
    pub(super) fn rotation(&self, phase: u64, position: u64) -> Nanos {
        let (now, then) = (phase % self.revolution, position % self.revolution);
        Nanos((then + self.revolution - now) % self.revolution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_the_rates_and_the_capacity_of_the_data_sheet() {
        let spec = HddSpec::seven_two_k_2010s();
        let geometry = Geometry::new(&spec);
        let sectors = spec.capacity_bytes / SECTOR_SIZE;
        // 1 MiB: 1048576 / 150e6 = 6.990506 ms outer, 1048576 / 75e6 = 13.981013 ms inner
        assert_eq!(geometry.position(2048) - geometry.position(0), 6_990_506);
        let inner = geometry.position(sectors) - geometry.position(sectors - 2048);
        assert!((13_981_013..=13_981_014).contains(&inner));
        // 1.0002e12 B / mean 112.5 MB/s = 8890.7 s = 1.0669e6 revolutions of 8.333 ms, / 4 heads
        let cylinders = geometry.cylinders() as f64;
        assert!((cylinders / 266_721.0 - 1.0).abs() < 0.001, "{cylinders} cylinders");
    }

    #[test]
    fn sector_at_inverts_position() {
        let geometry = Geometry::new(&HddSpec::seven_two_k_2010s());
        for sector in (0..geometry.sectors()).step_by(12_345_677) {
            let back = geometry.sector_at(geometry.position(sector));
            // Both round down.
            assert!(back == sector || back + 1 == sector, "{sector} -> {back}");
        }
    }
}
