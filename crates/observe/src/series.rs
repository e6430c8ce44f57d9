//! A time series: the same counters read again and again. As CSV: a head line, then one row per interval.

use std::fmt::Write;

use units::Nanos;

use crate::ParseError;
use crate::text::Lines;

/// Name of the first column.
const TIME_COLUMN: &str = "t_ns";

/// One reading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeriesRow {
    /// When, in the run's own time.
    pub at: Nanos,
    /// The counters, in the order of the columns.
    pub values: Vec<u64>,
}

/// Readings of the same counters over time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Series {
    columns: Vec<String>,
    rows: Vec<SeriesRow>,
}

impl Series {
    /// An empty series of the named counters.
    pub fn new(columns: Vec<String>) -> Series {
        Series { columns, rows: Vec::new() }
    }

    /// The counters' names.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The readings, in the order of time.
    pub fn rows(&self) -> &[SeriesRow] {
        &self.rows
    }

    /// Adds a reading. Panics if it does not have one value per column or is older than the one before it.
    pub fn push(&mut self, at: Nanos, values: Vec<u64>) {
        assert_eq!(values.len(), self.columns.len(), "one value per column");
        assert!(self.rows.last().is_none_or(|last| last.at <= at), "time does not run back");
        self.rows.push(SeriesRow { at, values });
    }

    /// The series as CSV: `t_ns,name,name,...`.
    pub fn write(&self) -> String {
        let mut out = String::from(TIME_COLUMN);
        for column in &self.columns {
            write!(out, ",{column}").expect("a String");
        }
        out.push('\n');
        for row in &self.rows {
            write!(out, "{}", row.at.0).expect("a String");
            for value in &row.values {
                write!(out, ",{value}").expect("a String");
            }
            out.push('\n');
        }
        out
    }

    /// Reads the CSV of [`Series::write`]; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Series, ParseError> {
        let mut lines = Lines::new(file, text);
        let head = lines.require("a line of column names")?;
        let mut columns = head.text.split(',');
        if columns.next() != Some(TIME_COLUMN) {
            return Err(head.error(format!("\"{TIME_COLUMN}\" as the first column")));
        }
        let mut series = Series::new(columns.map(str::to_owned).collect());
        while let Some(line) = lines.take() {
            let fields = line.text.split(',').map(|field| line.number(field, "a counter"));
            let fields: Vec<u64> = fields.collect::<Result<_, _>>()?;
            let expected = series.columns.len() + 1;
            if fields.len() != expected {
                return Err(line.error(format!("{expected} fields")));
            }
            let at = Nanos(fields[0]);
            if series.rows.last().is_some_and(|last| last.at > at) {
                return Err(line.error("a time that is not before the line above"));
            }
            series.push(at, fields[1..].to_vec());
        }
        Ok(series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let mut series = Series::new(vec!["pgfault".into(), "nr_dirty".into()]);
        series.push(Nanos(0), vec![1, 2]);
        series.push(Nanos(1_000_000_000), vec![3, 4]);
        let text = "t_ns,pgfault,nr_dirty\n0,1,2\n1000000000,3,4\n";
        assert_eq!(series.write(), text);
        assert_eq!(Series::parse("series.csv", text), Ok(series));
    }

    #[test]
    fn errors_name_the_line() {
        let bad = |text: &str| Series::parse("series.csv", text).unwrap_err();
        assert_eq!(bad("").line, 1);
        assert_eq!(bad("pgfault\n").expected, "\"t_ns\" as the first column");
        assert_eq!(bad("t_ns,pgfault\n0,1\n1\n").to_string(), "series.csv:3: expected 2 fields, found \"1\"");
        assert_eq!(bad("t_ns\n5\n4\n").line, 3);
    }
}
