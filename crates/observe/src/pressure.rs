//! `/proc/pressure/{cpu,io,memory}`. Source: `psi_show()`, kernel/sched/psi.c, 6.12.

use std::fmt::Write;

use crate::ParseError;
use crate::text::{Line, Lines};

/// Shares of time in which tasks waited, over three windows, and the total.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PressureLine {
    /// Percent of the last 10 s; printed with two decimals.
    pub avg10_pct: f64,
    /// Percent of the last 60 s.
    pub avg60_pct: f64,
    /// Percent of the last 300 s.
    pub avg300_pct: f64,
    /// Microseconds since boot.
    pub total_us: u64,
}

/// One resource's pressure.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Pressure {
    /// At least one task waited.
    pub some: PressureLine,
    /// All tasks that were not idle waited; older kernels do not print it for `cpu`.
    pub full: Option<PressureLine>,
}

impl Pressure {
    /// Reads the text of a pressure file; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Pressure, ParseError> {
        let mut lines = Lines::new(file, text);
        let some = parse_line(lines.require("\"some avg10=...\"")?, "some")?;
        let full = lines.take().map(|line| parse_line(line, "full")).transpose()?;
        match lines.take() {
            Some(line) => Err(line.error("the end of the file")),
            None => Ok(Pressure { some, full }),
        }
    }

    /// The text of a pressure file.
    pub fn write(&self) -> String {
        let mut out = String::new();
        write_line(&mut out, "some", &self.some);
        if let Some(full) = &self.full {
            write_line(&mut out, "full", full);
        }
        out
    }
}

fn parse_line(line: Line<'_>, kind: &str) -> Result<PressureLine, ParseError> {
    let expected = format!("\"{kind} avg10=N avg60=N avg300=N total=N\"");
    let fields: Vec<&str> = line.text.split_ascii_whitespace().collect();
    let value = |index: usize, key: &str| {
        let field: Option<&str> = fields.get(index).and_then(|field| field.strip_prefix(key));
        field.ok_or_else(|| line.error(expected.clone()))
    };
    if fields.first() != Some(&kind) || fields.len() != 5 {
        return Err(line.error(expected));
    }
    Ok(PressureLine {
        avg10_pct: line.number(value(1, "avg10=")?, "a share in percent")?,
        avg60_pct: line.number(value(2, "avg60=")?, "a share in percent")?,
        avg300_pct: line.number(value(3, "avg300=")?, "a share in percent")?,
        total_us: line.number(value(4, "total=")?, "microseconds")?,
    })
}

fn write_line(out: &mut String, kind: &str, line: &PressureLine) {
    let PressureLine { avg10_pct, avg60_pct, avg300_pct, total_us } = line;
    let averages = format!("avg10={avg10_pct:.2} avg60={avg60_pct:.2} avg300={avg300_pct:.2}");
    writeln!(out, "{kind} {averages} total={total_us}").expect("a String");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_print_no_full_line_for_cpu() {
        let text = "some avg10=14.49 avg60=2.61 avg300=0.54 total=2418629\n";
        let pressure = Pressure::parse("pressure_cpu", text).unwrap();
        assert_eq!((pressure.some.avg60_pct, pressure.some.total_us), (2.61, 2_418_629));
        assert!(pressure.full.is_none());
        assert_eq!(pressure.write(), text);
    }

    #[test]
    fn a_missing_average_is_an_error() {
        let error = Pressure::parse("pressure_io", "some avg10=0.00 total=0\n").unwrap_err();
        assert_eq!(error.line, 1);
        assert_eq!(error.expected, "\"some avg10=N avg60=N avg300=N total=N\"");
    }
}
