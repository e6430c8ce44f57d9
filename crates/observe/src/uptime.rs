//! `/proc/uptime`. Source: `uptime_proc_show()`, fs/proc/uptime.c, 6.12.

use crate::ParseError;
use crate::text::{Line, Lines};

/// How long the kernel has been up.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Uptime {
    /// Seconds since boot; printed with two decimals.
    pub up_s: f64,
    /// Seconds that the CPUs were idle, all together.
    pub idle_s: f64,
}

impl Uptime {
    /// Reads the text of `/proc/uptime`; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Uptime, ParseError> {
        let mut lines = Lines::new(file, text);
        let line = lines.require("two numbers of seconds")?;
        let (up, idle) = line.text.split_once(' ').ok_or_else(|| line.error("two numbers of seconds"))?;
        let uptime = Uptime { up_s: seconds(&line, up)?, idle_s: seconds(&line, idle)? };
        match lines.take() {
            Some(line) => Err(line.error("the end of the file")),
            None => Ok(uptime),
        }
    }

    /// The text of `/proc/uptime`.
    pub fn write(&self) -> String {
        format!("{:.2} {:.2}\n", self.up_s, self.idle_s)
    }
}

fn seconds(line: &Line<'_>, text: &str) -> Result<f64, ParseError> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| line.error("two numbers of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_it_writes() {
        let text = "354.29 1402.10\n";
        let uptime = Uptime::parse("uptime", text).unwrap();
        assert_eq!((uptime.up_s, uptime.write().as_str()), (354.29, text));
    }

    #[test]
    fn other_text_is_refused_with_its_line() {
        for text in ["", "354.29\n", "354.29 -1\n", "x 1.0\n", "1.0 2.0\n3.0 4.0\n"] {
            assert!(Uptime::parse("uptime", text).unwrap_err().to_string().starts_with("uptime:"), "{text:?}");
        }
    }
}
