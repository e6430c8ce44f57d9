//! Lines of a text with their numbers: what every parser of this crate reads through.

use std::str::FromStr;

use crate::ParseError;

/// Longest piece of a bad line that an error repeats, in characters.
const FOUND_CHARS_MAX: usize = 60;

/// A position in a text.
pub(crate) struct Lines<'a> {
    file: &'a str,
    lines: std::iter::Peekable<std::str::Lines<'a>>,
    number: usize,
}

/// One line with where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a str,
    file: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    /// Starts before the first line of `text`; `file` only names it in errors.
    pub(crate) fn new(file: &'a str, text: &'a str) -> Lines<'a> {
        Lines { file, lines: text.lines().peekable(), number: 0 }
    }

    /// Takes the next line.
    pub(crate) fn take(&mut self) -> Option<Line<'a>> {
        let text = self.lines.next()?;
        self.number += 1;
        Some(Line { text, file: self.file, number: self.number })
    }

    /// Takes the next line if it satisfies `wanted`.
    pub(crate) fn take_if(&mut self, wanted: impl Fn(&str) -> bool) -> Option<Line<'a>> {
        self.lines.peek().is_some_and(|text| wanted(text)).then(|| self.take()).flatten()
    }

    /// Takes the next line; an error saying what was `expected` at the end of the text.
    pub(crate) fn require(&mut self, expected: &str) -> Result<Line<'a>, ParseError> {
        let (file, number) = (self.file, self.number + 1);
        self.take().ok_or_else(|| ParseError {
            file: file.to_owned(),
            line: number,
            expected: expected.to_owned(),
            found: "end of file".to_owned(),
        })
    }
}

impl<'a> Line<'a> {
    /// The error that this line is not what was `expected`.
    pub(crate) fn error(&self, expected: impl Into<String>) -> ParseError {
        let mut found: String = self.text.chars().take(FOUND_CHARS_MAX).collect();
        if found.len() < self.text.len() {
            found.push_str("...");
        }
        ParseError {
            file: self.file.to_owned(),
            line: self.number,
            expected: expected.into(),
            found: format!("{found:?}"),
        }
    }

    /// `field` of this line as a number, or the error naming `what` it should be.
    pub(crate) fn number<T: FromStr>(&self, field: &str, what: &str) -> Result<T, ParseError> {
        field.parse().map_err(|_| self.error(format!("a number as {what}")))
    }

    /// What follows `prefix`, with the blanks around it removed, as a number.
    pub(crate) fn number_after<T: FromStr>(&self, prefix: &str) -> Result<T, ParseError> {
        let rest = self.text.trim_start().strip_prefix(prefix);
        let rest = rest.ok_or_else(|| self.error(format!("\"{prefix}\" and a number")))?;
        self.number(rest.trim(), &format!("the value of \"{prefix}\""))
    }

    /// Blank-separated fields of `text` as numbers.
    pub(crate) fn numbers(&self, text: &str, what: &str) -> Result<Vec<u64>, ParseError> {
        text.split_ascii_whitespace().map(|field| self.number(field, what)).collect()
    }

    /// The line as "name value"; `expected` describes it in the error.
    pub(crate) fn name_value(&self, expected: &str) -> Result<(&'a str, u64), ParseError> {
        let mut fields = self.text.split_ascii_whitespace();
        match (fields.next(), fields.next(), fields.next()) {
            (Some(name), Some(value), None) => Ok((name, value.parse().map_err(|_| self.error(expected))?)),
            _ => Err(self.error(expected)),
        }
    }

    /// The line as `Node N, zone NAME` and what follows the name.
    pub(crate) fn node_zone(&self) -> Result<(u32, &'a str, &'a str), ParseError> {
        let expected = "\"Node N, zone NAME\"";
        let rest = self.text.strip_prefix("Node ").ok_or_else(|| self.error(expected))?;
        let (node, rest) = rest.split_once(", zone ").ok_or_else(|| self.error(expected))?;
        let rest = rest.trim_start();
        let end = rest.find([' ', ',']).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.error(expected));
        }
        Ok((self.number(node.trim(), "the node")?, &rest[..end], &rest[end..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_file_line_and_expectation() {
        let mut lines = Lines::new("before/vmstat", "nr_free_pages 1\nnr_dirty x\n");
        assert_eq!(lines.take().unwrap().name_value("\"name value\""), Ok(("nr_free_pages", 1)));
        let error = lines.take().unwrap().name_value("\"name value\"").unwrap_err();
        let shown = "before/vmstat:2: expected \"name value\", found \"nr_dirty x\"";
        assert_eq!(error.to_string(), shown);
        let Err(error) = lines.require("a zone") else { panic!("there is no third line") };
        assert_eq!(error.to_string(), "before/vmstat:3: expected a zone, found end of file");
    }

    #[test]
    fn node_and_zone() {
        let mut lines = Lines::new("f", "Node    0, zone    DMA32, type Movable\nNode 1, zone \n");
        assert_eq!(lines.take().unwrap().node_zone(), Ok((0, "DMA32", ", type Movable")));
        assert!(lines.take().unwrap().node_zone().is_err());
    }
}
