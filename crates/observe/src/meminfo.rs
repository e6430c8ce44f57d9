//! `/proc/meminfo`. Source: `meminfo_proc_show()`, fs/proc/meminfo.c, and `hugetlb_report_meminfo()`, mm/hugetlb.c, 6.12.

use std::fmt::Write;

use indexmap::IndexMap;

use crate::ParseError;
use crate::text::Lines;

/// Fields by name (without the colon) in the order in which they are printed: KiB, or pages for `HugePages_*`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Meminfo(pub IndexMap<String, u64>);

/// Fields that count huge pages and print no unit.
const WITHOUT_UNIT: &str = "HugePages_";

/// Fields whose label takes 19 columns and whose number 5 (others: 16 and 8).
const LONG_LABELS: [&str; 3] = ["HugePages_", "HardwareCorrupted", "EarlyMemtestBad"];

impl Meminfo {
    /// The value of a field, in KiB (`HugePages_*`: huge pages).
    pub fn get(&self, field: &str) -> Option<u64> {
        self.0.get(field).copied()
    }

    /// Sets a field, at the end if it is new.
    pub fn set(&mut self, field: &str, value: u64) {
        self.0.insert(field.to_owned(), value);
    }

    /// Reads the text of `/proc/meminfo`; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Meminfo, ParseError> {
        let mut fields = IndexMap::new();
        let mut lines = Lines::new(file, text);
        while let Some(line) = lines.take() {
            let expected = "\"Name: value kB\" (HugePages_*: without kB)";
            let (name, value) = line.text.split_once(':').ok_or_else(|| line.error(expected))?;
            let value = match value.strip_suffix(" kB") {
                Some(kib) if !name.starts_with(WITHOUT_UNIT) => kib,
                None if name.starts_with(WITHOUT_UNIT) => value,
                _ => return Err(line.error(expected)),
            };
            let value = line.number(value.trim(), &format!("the value of {name}"))?;
            if fields.insert(name.to_owned(), value).is_some() {
                return Err(line.error(format!("{name} only once")));
            }
        }
        Ok(Meminfo(fields))
    }

    /// The text of `/proc/meminfo`, in the fields' own order.
    pub fn write(&self) -> String {
        let mut out = String::new();
        for (name, value) in &self.0 {
            let long = LONG_LABELS.iter().any(|prefix| name.starts_with(prefix));
            let (label_width, width) = if long { (19, 5) } else { (16, 8) };
            let unit = if name.starts_with(WITHOUT_UNIT) { "" } else { " kB" };
            let label = format!("{name}:");
            writeln!(out, "{label:<label_width$}{value:>width$}{unit}").expect("a String");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_format_strings() {
        let mut info = Meminfo::default();
        info.set("MemTotal", 538_884);
        info.set("VmallocTotal", 34_359_738_367);
        info.set("HardwareCorrupted", 0);
        info.set("HugePages_Total", 123_456);
        let text = "MemTotal:         538884 kB\nVmallocTotal:   34359738367 kB\n\
                    HardwareCorrupted:     0 kB\nHugePages_Total:   123456\n";
        assert_eq!(info.write(), text);
        assert_eq!(Meminfo::parse("meminfo", text), Ok(info));
    }

    #[test]
    fn a_missing_unit_is_an_error() {
        let error = Meminfo::parse("meminfo", "MemTotal:  5 kB\nMemFree:  5\n").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.expected.contains("kB"));
    }
}
