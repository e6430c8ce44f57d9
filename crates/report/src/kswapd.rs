//! Why kswapd is busy, in one sentence with its evidence.
//!
//! The causes are those that kernels are known for: a balance test that is the wrong way round (2.6.38), a test that asks a zone
//! for what it keeps back from others (until 3.0), requests for blocks that reclaim cannot make, boosted reclaim that may free nothing under the multi-gen LRU (6.12),
//! and page cache that is needed at once again because nothing else can be reclaimed.

use crate::number::format_number;

/// kswapd counts as busy from this share of one CPU on, in percent: `top` then shows it among the first.
const BUSY_PCT: f64 = 30.0;
/// What happened in this share of kswapd's runs, or to this share of the pages, is what kept it busy.
const MOSTLY: f64 = 0.5;
/// Pages reclaimed for a page scanned below which scanning is in vain.
const IN_VAIN: f64 = 0.1;

/// What is known of kswapd's work in a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct KswapdEvidence {
    /// CPU time, in percent of that of one CPU.
    pub cpu_pct: f64,
    /// Runs.
    pub runs: u64,
    /// Those of them that were for blocks of an order above 0.
    pub for_blocks: u64,
    /// Those of the runs that reclaimed nothing.
    pub futile: u64,
    /// Those of these that only worked off a boost of the watermarks.
    pub futile_boosted: u64,
    /// Those of these in which the multi-gen LRU gave nothing because no page may be written.
    pub futile_unwritten: u64,
    /// Times that it gave a node up.
    pub given_up: u64,
    /// Times that it stayed awake because enough was balanced.
    pub awake_as_balanced: u64,
    /// Times that it stayed awake for what a zone keeps back from requests that may use a higher one.
    pub awake_for_reserve: u64,
    /// Pages that it scanned, and reclaimed.
    pub scanned: u64,
    /// See `scanned`.
    pub reclaimed: u64,
    /// Pages of files that came back after they were reclaimed, by whomever: read again, or found refaulting.
    pub came_back: u64,
    /// Pages of files that were reclaimed, by whomever.
    pub files_reclaimed: u64,
    /// Page cache of a node when a run began, in percent of all memory; the mean.
    pub cache_pct: f64,
    /// Whether there is swap.
    pub has_swap: bool,
    /// Memory cgroups beside the root group, each of which kswapd passes in a run.
    pub memcgs: u64,
}

/// Why kswapd was busy, or why it gave up; nothing if it was not and did not.
pub fn why_busy(seen: &KswapdEvidence) -> Option<String> {
    if seen.given_up > 0 {
        return Some(given_up(seen));
    }
    if seen.cpu_pct < BUSY_PCT {
        return None;
    }
    let of_runs = |count: u64| count as f64 >= MOSTLY * seen.runs.max(1) as f64;
    let cause = if of_runs(seen.awake_as_balanced) {
        format!(
            "its test for sleeping is the wrong way round: {} times in {} runs it stayed awake although zones with a quarter \
             of the memory were balanced for its order",
            seen.awake_as_balanced, seen.runs
        )
    } else if of_runs(seen.awake_for_reserve) {
        format!(
            "its test for sleeping asks a zone for what that keeps back from requests which may use a higher one: {} times \
             in {} runs it stayed awake although every zone had enough",
            seen.awake_for_reserve, seen.runs
        )
    } else if of_runs(seen.futile_boosted) {
        boosted(seen)
    } else if of_runs(seen.for_blocks) && seen.reclaimed < seen.for_blocks {
        format!(
            "it is asked for blocks of a higher order that reclaim cannot make: {} of {} runs were for such, and {} pages were \
             reclaimed in all",
            seen.for_blocks, seen.runs, seen.reclaimed
        )
    } else if thrashes(seen) {
        let swap = if seen.has_swap { "" } else { " and there is no swap" };
        format!(
            "it takes page cache that is in use: there is {} % of memory of it{swap}, and of {} pages of files reclaimed {} \
             were needed again",
            number(seen.cache_pct),
            seen.files_reclaimed,
            seen.came_back
        )
    } else if (seen.reclaimed as f64) < IN_VAIN * seen.scanned as f64 {
        format!("it scans in vain: {} of {} pages scanned were reclaimed", seen.reclaimed, seen.scanned)
    } else {
        format!("it has that much to do: it reclaimed {} of {} pages scanned", seen.reclaimed, seen.scanned)
    };
    Some(format!("kswapd used {} % of a CPU: {cause}", number(seen.cpu_pct)))
}

fn thrashes(seen: &KswapdEvidence) -> bool {
    seen.came_back as f64 >= MOSTLY * seen.files_reclaimed.max(1) as f64
}

fn given_up(seen: &KswapdEvidence) -> String {
    let why = if seen.futile_boosted as f64 >= MOSTLY * seen.futile as f64 {
        boosted(seen)
    } else {
        format!("{} of {} runs reclaimed nothing", seen.futile, seen.runs)
    };
    let revived = if seen.cpu_pct < BUSY_PCT {
        String::new()
    } else {
        format!("used {} % of a CPU, because what others reclaimed revived it, and ", number(seen.cpu_pct))
    };
    let times = if seen.given_up == 1 { "once".to_owned() } else { format!("{} times", seen.given_up) };
    format!("kswapd {revived}gave a node up {times} and left it to direct reclaim: {why}")
}

fn boosted(seen: &KswapdEvidence) -> String {
    let why = if seen.futile_unwritten as f64 >= MOSTLY * seen.futile_boosted as f64 {
        "they may not write pages and the multi-gen LRU then frees none"
    } else {
        "they may neither write pages nor swap, and found none to drop"
    };
    let groups = if seen.memcgs == 0 { String::new() } else { format!(", past {} memory cgroups each", seen.memcgs) };
    format!(
        "{} of {} runs only worked off a boost of the watermarks and reclaimed nothing{groups}, because {why} \
         (vm.watermark_boost_factor=0 avoids it)",
        seen.futile_boosted, seen.runs
    )
}

fn number(value: f64) -> String {
    format_number(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: KswapdEvidence = KswapdEvidence {
        cpu_pct: BUSY_PCT,
        runs: 100,
        for_blocks: 0,
        futile: 0,
        futile_boosted: 0,
        futile_unwritten: 0,
        given_up: 0,
        awake_as_balanced: 0,
        awake_for_reserve: 0,
        scanned: 1_000,
        reclaimed: 1_000,
        came_back: 0,
        files_reclaimed: 1_000,
        cache_pct: 50.0,
        has_swap: true,
        memcgs: 0,
    };

    fn says(seen: KswapdEvidence, words: &str) {
        let sentence = why_busy(&seen).expect("it is busy");
        assert!(sentence.contains(words), "{sentence}");
    }

    #[test]
    fn a_kswapd_that_is_not_busy_needs_no_reason() {
        assert_eq!(why_busy(&KswapdEvidence { cpu_pct: BUSY_PCT - 0.1, ..BUSY }), None);
        says(BUSY, "has that much to do: it reclaimed 1000 of 1000");
    }

    #[test]
    fn each_cause_is_named_from_half_of_the_runs_on() {
        says(KswapdEvidence { awake_as_balanced: 49, ..BUSY }, "has that much to do");
        says(KswapdEvidence { awake_as_balanced: 50, ..BUSY }, "wrong way round: 50 times in 100 runs");
        says(KswapdEvidence { awake_for_reserve: 50, ..BUSY }, "asks a zone for what that keeps back");
        let boosted = KswapdEvidence { futile: 50, futile_boosted: 50, futile_unwritten: 25, ..BUSY };
        says(boosted, "50 of 100 runs only worked off a boost");
        says(boosted, "the multi-gen LRU then frees none");
        says(KswapdEvidence { memcgs: 7, ..boosted }, "reclaimed nothing, past 7 memory cgroups each, because");
        says(KswapdEvidence { futile_unwritten: 24, ..boosted }, "found none to drop");
        let blocks = KswapdEvidence { for_blocks: 50, reclaimed: 49, ..BUSY };
        says(blocks, "cannot make: 50 of 100 runs were for such, and 49 pages");
        says(KswapdEvidence { reclaimed: 50, scanned: 50, ..blocks }, "has that much to do");
    }

    #[test]
    fn cache_that_comes_back_is_in_use() {
        let tiny = KswapdEvidence { cache_pct: 6.5, came_back: 500, has_swap: false, ..BUSY };
        says(tiny, "6.50 % of memory of it and there is no swap, and of 1000 pages of files reclaimed 500 were needed");
        says(KswapdEvidence { came_back: 499, ..tiny }, "has that much to do");
        says(KswapdEvidence { reclaimed: 99, ..BUSY }, "in vain: 99 of 1000");
    }

    #[test]
    fn a_node_that_was_given_up_is_told_however_idle_kswapd_is() {
        let idle = KswapdEvidence { cpu_pct: 0.0, given_up: 1, futile: 16, ..BUSY };
        says(
            KswapdEvidence { futile_boosted: 8, ..idle },
            "gave a node up once and left it to direct reclaim: 8 of 100",
        );
        says(KswapdEvidence { futile_boosted: 7, ..idle }, "16 of 100 runs reclaimed nothing");
        says(KswapdEvidence { given_up: 2, ..idle }, "gave a node up 2 times and left");
        let revived = "kswapd used 30 % of a CPU, because what others reclaimed revived it, and gave a node up once";
        says(KswapdEvidence { cpu_pct: 30.0, ..idle }, revived);
    }
}
