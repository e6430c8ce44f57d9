//! `/proc/vmstat`: named counters in the kernel's order.

use std::fmt::Write;

use indexmap::IndexMap;
use rules::Era;
use serde::{Deserialize, Serialize};

use crate::text::Lines;
use crate::{ParseError, vmstat_names};

/// Counters by name, in the order in which they are printed. Units are the kernel's: pages, KiB (`nr_kernel_stack`), events.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(pub IndexMap<String, u64>);

impl Counters {
    /// The value of `name`, if there is such a counter.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Sets `name`, at the end if it is new.
    pub fn set(&mut self, name: &str, value: u64) {
        match self.0.get_mut(name) {
            Some(slot) => *slot = value,
            None => {
                self.0.insert(name.to_owned(), value);
            }
        }
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, &value)| (name.as_str(), value))
    }

    /// The counters that a kernel of `era` prints, in its order; others are left out.
    pub fn ordered(&self, era: Era) -> Counters {
        vmstat_names(era).filter_map(|name| Some((name, self.get(name)?))).collect()
    }

    /// Reads the text of `/proc/vmstat`; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Counters, ParseError> {
        let mut counters = Counters::default();
        let mut lines = Lines::new(file, text);
        while let Some(line) = lines.take() {
            let (name, value) = line.name_value("\"name value\" of /proc/vmstat")?;
            if counters.0.insert(name.to_owned(), value).is_some() {
                return Err(line.error(format!("{name} only once")));
            }
        }
        Ok(counters)
    }

    /// The text of `/proc/vmstat`, in the counters' own order.
    pub fn write(&self) -> String {
        let mut out = String::new();
        for (name, value) in self.iter() {
            writeln!(out, "{name} {value}").expect("writing to a String cannot fail");
        }
        out
    }
}

impl<'a> FromIterator<(&'a str, u64)> for Counters {
    fn from_iter<I: IntoIterator<Item = (&'a str, u64)>>(counters: I) -> Counters {
        Counters(counters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_follows_the_era_and_drops_what_it_lacks() {
        // 4.20 prints nr_page_table_pages before nr_bounce; it has no pgscan_anon.
        let counters: Counters =
            [("pgscan_anon", 3), ("nr_bounce", 2), ("nr_page_table_pages", 1)].into_iter().collect();
        assert_eq!(counters.ordered(Era::V4_20).write(), "nr_page_table_pages 1\nnr_bounce 2\n");
        assert_eq!(counters.ordered(Era::V6_12).write(), "nr_bounce 2\nnr_page_table_pages 1\npgscan_anon 3\n");
    }

    #[test]
    fn a_name_twice_is_an_error() {
        let error = Counters::parse("vmstat", "pgfault 1\npgfault 2\n").unwrap_err();
        assert_eq!(error.line, 2);
        assert_eq!(error.expected, "pgfault only once");
    }
}
