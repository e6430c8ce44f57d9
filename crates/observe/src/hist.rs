//! Histograms of tracepoints, as tracefs prints them.
//!
//! Source: Documentation/trace/histogram.rst (6.12): comments that name the trigger, an entry a line, totals; a file
//! holds one after another.

use crate::ParseError;
use crate::text::{Line, Lines};

/// A histogram.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceHist {
    /// The trigger that made it: `hist:keys=...`.
    pub trigger: String,
    /// Its entries.
    pub entries: Vec<HistEntry>,
    /// Events that were counted.
    pub hits: u64,
    /// Events that were not, because the histogram was full.
    pub dropped: u64,
}

/// A line of a histogram.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HistEntry {
    /// Keys by name.
    pub keys: Vec<(String, String)>,
    /// Sums by name; `hitcount` first.
    pub values: Vec<(String, u64)>,
}

impl HistEntry {
    /// A key as a number.
    pub fn key(&self, name: &str) -> Option<u64> {
        self.keys.iter().find(|(known, _)| known == name)?.1.parse().ok()
    }

    /// A sum; `hitcount` is the number of events.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

const ENTRY: &str = "\"{ key: value, ... } name: number ...\"";
const TRIGGER: &str = "# trigger info: ";

impl TraceHist {
    /// Reads the text of a `hist` file; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Vec<TraceHist>, ParseError> {
        let mut histograms: Vec<TraceHist> = Vec::new();
        let mut lines = Lines::new(file, text);
        while let Some(line) = lines.take() {
            if let Some(trigger) = line.text.strip_prefix(TRIGGER) {
                histograms.push(TraceHist { trigger: trigger.to_owned(), ..TraceHist::default() });
                continue;
            }
            let content = line.text.trim();
            if content.is_empty() || content.starts_with('#') || content == "Totals:" {
                continue;
            }
            let current = histograms.last_mut().ok_or_else(|| line.error(format!("\"{TRIGGER}\" first")))?;
            match content.split_once(':') {
                Some(("Hits", _)) => current.hits = line.number_after("Hits:")?,
                Some(("Dropped", _)) => current.dropped = line.number_after("Dropped:")?,
                Some(("Entries", _)) => {}
                _ => current.entries.push(entry(&line, content)?),
            }
        }
        Ok(histograms)
    }
}

fn entry(line: &Line<'_>, content: &str) -> Result<HistEntry, ParseError> {
    let inner = content.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    let (keys, values) = inner.ok_or_else(|| line.error(ENTRY))?;
    let key = |part: &str| part.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    let keys: Option<Vec<_>> = keys.split(',').map(key).collect();
    let mut entry = HistEntry { keys: keys.ok_or_else(|| line.error(ENTRY))?, values: Vec::new() };
    let mut fields = values.split_ascii_whitespace();
    while let Some(name) = fields.next() {
        let name = name.strip_suffix(':').ok_or_else(|| line.error(ENTRY))?;
        let value = fields.next().ok_or_else(|| line.error(ENTRY))?;
        entry.values.push((name.to_owned(), line.number(value, name)?));
    }
    Ok(entry)
}

/// The histogram of fragmentation events, below a run directory.
pub const EXTFRAG_HIST: &str = "hist/kmem.mm_page_alloc_extfrag";

/// Fragmentation events by requested type (unmovable, movable, reclaimable), from the histogram of
/// `kmem:mm_page_alloc_extfrag` by fallback order and allocated type: fallbacks below the pageblock order. Nothing if no
/// histogram has these keys.
pub fn extfrag_events(histograms: &[TraceHist]) -> Option<[u64; 3]> {
    let wanted = ["fallback_order", "alloc_migratetype"];
    let fits = |hist: &&TraceHist| wanted.iter().all(|key| hist.trigger.contains(key));
    let histogram = histograms.iter().find(fits)?;
    let mut events = [0; 3];
    for entry in &histogram.entries {
        let order = entry.key("fallback_order")?;
        if order < u64::from(units::PAGEBLOCK_ORDER.0) {
            *events.get_mut(entry.key("alloc_migratetype")? as usize)? += entry.value("hitcount")?;
        }
    }
    Some(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# event histogram\n#\n\
        # trigger info: hist:keys=fallback_order,alloc_migratetype:vals=hitcount:sort=hitcount:size=512 [active]\n#\n\n\
        { fallback_order:          9, alloc_migratetype:          1 } hitcount:          5\n\
        { fallback_order:          8, alloc_migratetype:          1 } hitcount:          7\n\
        { fallback_order:          0, alloc_migratetype:          2 } hitcount:         11  sum:          3\n\n\
        Totals:\n    Hits: 23\n    Entries: 3\n    Dropped: 0\n\n\n\
        # event histogram\n#\n# trigger info: hist:keys=sync [active]\n#\n\n\nTotals:\n    Hits: 0\n    Entries: 0\n    Dropped: 2\n";

    #[test]
    fn a_file_with_two_histograms_is_read() {
        let histograms = TraceHist::parse("hist", TEXT).unwrap();
        assert_eq!(histograms.len(), 2);
        assert_eq!((histograms[0].hits, histograms[0].entries.len(), histograms[1].dropped), (23, 3, 2));
        assert_eq!(histograms[0].entries[2].value("sum"), Some(3));
    }

    #[test]
    fn only_fallbacks_below_the_pageblock_order_fragment() {
        let histograms = TraceHist::parse("hist", TEXT).unwrap();
        assert_eq!(extfrag_events(&histograms), Some([0, 7, 11]));
        assert_eq!(extfrag_events(&histograms[1..]), None);
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = TraceHist::parse("hist", "# trigger info: x\n{ order 3 } hitcount: 1\n").unwrap_err();
        assert_eq!((error.line, error.expected.as_str()), (2, ENTRY));
        let error = TraceHist::parse("hist", "{ order: 3 } hitcount: 1\n").unwrap_err();
        assert_eq!(error.line, 1);
    }
}
