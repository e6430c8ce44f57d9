//! The figures of a rotating disk.

use crate::spec::{BYTES_PER_S, SpecError, check};
use crate::throttle::ThrottleSpec;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Legal capacities: 64 KiB to 128 TiB, so that the time to read all of it fits 64 bits of ns.
const CAPACITY_BYTES: RangeInclusive<u64> = 1 << 16..=1 << 47;
/// Slowest legal media rate: 100 KB/s.
const MEDIA_BYTES_PER_S_MIN: u64 = 100_000;
/// Legal times in us: up to 1 s.
const TIME_US: RangeInclusive<u64> = 0..=1_000_000;

/// Figures of a rotating disk.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct HddSpec {
    /// Capacity; 64 KiB to 128 TiB.
    pub capacity_bytes: u64,
    /// Revolutions per minute; 1,000 to 30,000.
    pub rpm: u64,
    /// Surfaces in use; 1 to 64. With the rates it gives the number of cylinders.
    pub heads: u64,
    /// Zones of equal width and constant rate; 1 to 256.
    pub zones: u64,
    /// Sustained rate of the outermost zone (sector 0); at least 100 KB/s.
    pub outer_bytes_per_s: u64,
    /// Sustained rate of the innermost zone; from 100 KB/s to the outer rate.
    pub inner_bytes_per_s: u64,
    /// Seek to the next cylinder in us; at most 10^6.
    pub seek_track_us: u64,
    /// Mean read seek over uniformly random pairs of cylinders in us; at most 10^6.
    pub seek_average_us: u64,
    /// Seek over all cylinders in us; at most 10^6.
    pub seek_full_us: u64,
    /// What a write's seek takes longer than a read's, in us; at most 10^6.
    pub write_settle_us: u64,
    /// Time from a command's arrival until the drive acts on it, in us; at most 10^6. Overlaps with other commands.
    pub command_overhead_us: u64,
    /// Rate of the interface, for transfers from and to the drive's caches.
    pub interface_bytes_per_s: u64,
    /// Commands in the drive at once (NCQ); 1 to 32.
    pub ncq_depth: u32,
    /// Dirty data that the write cache holds; 0 (off) to 4 GiB.
    pub write_cache_bytes: u64,
    /// Separate dirty extents that the write cache holds; 1 to 65,536.
    pub write_cache_entries: u64,
    /// How far the drive reads ahead, and what one segment of its read buffer keeps; 0 (off) to 1 GiB.
    pub read_ahead_bytes: u64,
    /// Segments of the read buffer: sequential streams that it remembers; 1 to 1024.
    pub read_segments: u64,
    /// A limit in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<ThrottleSpec>,
}

impl HddSpec {
    /// A 7200 rpm, 1 TB desktop disk of the early 2010s (WD Black and Blue, Seagate Barracuda 7200.12 and alike).
    ///
    /// Data-sheet class: capacity, 7200 rpm, seek 8.5 ms read and 9.5 ms write, 0.8 ms track to track, 150 MB/s outer,
    /// 64 MB cache, 300 MB/s interface, NCQ 31 as Linux uses it. Reviews of the class: 75 MB/s inner. Guesses: full stroke
    /// 18 ms, 4 surfaces, 16 zones, 100 us per command, half the cache for dirty data in up to 1024
    /// extents, 16 read segments of 2 MiB.
    pub fn seven_two_k_2010s() -> HddSpec {
        HddSpec {
            capacity_bytes: 1_000_204_886_016,
            rpm: 7200,
            heads: 4,
            zones: 16,
            outer_bytes_per_s: 150_000_000,
            inner_bytes_per_s: 75_000_000,
            seek_track_us: 800,
            seek_average_us: 8_500,
            seek_full_us: 18_000,
            write_settle_us: 1_000,
            command_overhead_us: 100,
            interface_bytes_per_s: 300_000_000,
            ncq_depth: 31,
            write_cache_bytes: 32 << 20,
            write_cache_entries: 1024,
            read_ahead_bytes: 2 << 20,
            read_segments: 16,
            throttle: None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        check("capacity_bytes", self.capacity_bytes, CAPACITY_BYTES)?;
        check("rpm", self.rpm, 1_000..=30_000)?;
        check("heads", self.heads, 1..=64)?;
        check("zones", self.zones, 1..=256)?;
        check("outer_bytes_per_s", self.outer_bytes_per_s, MEDIA_BYTES_PER_S_MIN..=*BYTES_PER_S.end())?;
        check("inner_bytes_per_s", self.inner_bytes_per_s, MEDIA_BYTES_PER_S_MIN..=self.outer_bytes_per_s)?;
        self.validate_times()?;
        check("interface_bytes_per_s", self.interface_bytes_per_s, BYTES_PER_S)?;
        check("ncq_depth", u64::from(self.ncq_depth), 1..=32)?;
        check("write_cache_bytes", self.write_cache_bytes, 0..=4 << 30)?;
        check("write_cache_entries", self.write_cache_entries, 1..=65_536)?;
        check("read_ahead_bytes", self.read_ahead_bytes, 0..=1 << 30)?;
        check("read_segments", self.read_segments, 1..=1024)?;
        self.throttle.as_ref().map_or(Ok(()), ThrottleSpec::validate)
    }

    fn validate_times(&self) -> Result<(), SpecError> {
        check("seek_track_us", self.seek_track_us, TIME_US)?;
        check("seek_average_us", self.seek_average_us, TIME_US)?;
        check("seek_full_us", self.seek_full_us, TIME_US)?;
        check("write_settle_us", self.write_settle_us, TIME_US)?;
        check("command_overhead_us", self.command_overhead_us, TIME_US)?;
        let curve = super::seek::SeekCurve::new(self, 2);
        if curve.is_monotone() {
            return Ok(());
        }
        Err(SpecError {
            field: "seek_average_us".to_owned(),
            value: self.seek_average_us.to_string(),
            expected: format!(
                "a mean that a rising curve from {} (seek_track_us) to {} (seek_full_us) can have",
                self.seek_track_us, self.seek_full_us
            ),
        })
    }
}
