//! Tracepoints whose fields differ between kernels, as data.
//!
//! A [`Layout`] has the text of a tracepoint, and since which kernel it is printed so. A word in braces stands for a field: a
//! decimal number, with `:x` a hexadecimal one after `0x`, with `:s` text, with `:8s` text in at least eight columns. Reading
//! tries the layouts of a name, newest first.

use std::borrow::Cow;
use std::fmt;

use crate::{compaction, vmscan};

/// The text of a tracepoint since a kernel, until the next of its name.
pub(crate) struct Layout {
    pub name: &'static str,
    /// The place of that kernel's rule among those of its group.
    pub since: u8,
    pub text: &'static str,
}

/// Those of all groups, those of a name oldest first.
fn layouts() -> impl DoubleEndedIterator<Item = &'static Layout> {
    vmscan::LAYOUTS.iter().chain(&compaction::LAYOUTS)
}

/// The value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldValue {
    /// A number.
    Number(i64),
    /// Names of flags, a list, a zone or a function.
    Text(Cow<'static, str>),
}

impl From<i64> for FieldValue {
    fn from(number: i64) -> FieldValue {
        FieldValue::Number(number)
    }
}

impl From<&'static str> for FieldValue {
    fn from(text: &'static str) -> FieldValue {
        FieldValue::Text(Cow::Borrowed(text))
    }
}

impl From<String> for FieldValue {
    fn from(text: String) -> FieldValue {
        FieldValue::Text(Cow::Owned(text))
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldValue::Number(number) => write!(f, "{number}"),
            FieldValue::Text(text) => f.write_str(text),
        }
    }
}

/// One occurrence of a tracepoint, with the fields that its kernel prints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelEvent {
    name: &'static str,
    text: &'static str,
    values: Vec<FieldValue>,
}

impl KernelEvent {
    /// The event by the last of a group's layouts that the kernel with the rule at a place has, of all fields that any prints.
    /// `None`: it has no such tracepoint.
    ///
    /// # Panics
    /// If a field is missing that the kernel prints.
    pub(crate) fn new(
        layouts: &'static [Layout],
        kernel: u8,
        name: &str,
        field: impl Fn(&str) -> Option<FieldValue>,
    ) -> Option<KernelEvent> {
        let layout = layouts.iter().rfind(|layout| layout.name == name && layout.since <= kernel)?;
        let value = |part: Part| field(part.key).unwrap_or_else(|| panic!("{name} has a field {}", part.key));
        Some(KernelEvent { name: layout.name, text: layout.text, values: parts(layout.text).map(value).collect() })
    }

    /// The tracepoint's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A field that is a number, if this kernel prints it.
    pub fn number(&self, key: &str) -> Option<i64> {
        match self.field(key)? {
            FieldValue::Number(number) => Some(*number),
            FieldValue::Text(_) => None,
        }
    }

    /// A field, if this kernel prints it.
    pub fn field(&self, key: &str) -> Option<&FieldValue> {
        parts(self.text).zip(&self.values).find(|(part, _)| part.key == key).map(|(_, value)| value)
    }

    /// The fields that its kernel prints, in order.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        parts(self.text).map(|part| part.key).collect()
    }

    /// Reads the text after the name. `None`: no kernel has such a tracepoint. `Err`: the first field that is missing or wrong,
    /// by the newest layout.
    pub(crate) fn parse(name: &str, text: &str) -> Option<Result<KernelEvent, &'static str>> {
        let mut tried = layouts().rev().filter(|layout| layout.name == name).map(|layout| {
            let values = values(layout.text, text.trim_end())?;
            Ok(KernelEvent { name: layout.name, text: layout.text, values })
        });
        let newest = tried.next()?;
        Some(if newest.is_ok() { newest } else { tried.find(Result::is_ok).unwrap_or(newest) })
    }
}

impl fmt::Display for KernelEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parts(self.text).zip(&self.values).try_for_each(|(part, value)| {
            f.write_str(part.before)?;
            match (value, part.form) {
                (FieldValue::Number(number), Form::Hexadecimal) => write!(f, "{number:#x}"),
                (FieldValue::Text(text), Form::Columns) => write!(f, "{text:<COLUMNS$}"),
                _ => write!(f, "{value}"),
            }
        })
    }
}

/// Columns of a padded text (`%-8s`).
const COLUMNS: usize = 8;

/// How a field is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Decimal,
    Hexadecimal,
    Text,
    Columns,
}

impl Form {
    fn read(self, text: &str) -> Option<FieldValue> {
        Some(match self {
            Form::Decimal => text.parse::<i64>().ok()?.into(),
            // A difference that is below 0 to us is a large number to the kernel.
            Form::Hexadecimal => (u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()? as i64).into(),
            Form::Text => text.to_owned().into(),
            Form::Columns => text.trim_end().to_owned().into(),
        })
    }
}

/// A field of a layout, and the text before it; every layout ends with a field.
struct Part {
    before: &'static str,
    key: &'static str,
    form: Form,
}

fn parts(layout: &'static str) -> impl Iterator<Item = Part> {
    layout.split_inclusive('}').map(|part| {
        let (before, field) = part.trim_end_matches('}').split_once('{').expect("a layout ends with a field");
        let (key, form) = field.split_once(':').map_or((field, Form::Decimal), |(key, form)| match form {
            "x" => (key, Form::Hexadecimal),
            "8s" => (key, Form::Columns),
            _ => (key, Form::Text),
        });
        Part { before, key, form }
    })
}

/// The fields of a text, which end where the next part begins.
fn values(layout: &'static str, mut text: &str) -> Result<Vec<FieldValue>, &'static str> {
    let mut parts = parts(layout).peekable();
    let mut values = Vec::new();
    while let Some(part) = parts.next() {
        text = text.strip_prefix(part.before).ok_or(part.key)?;
        let end = parts.peek().map_or(Ok(text.len()), |next| text.find(next.before).ok_or(next.key))?;
        let (value, rest) = text.split_at(end);
        text = rest;
        values.push(part.form.read(value).ok_or(part.key)?);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A value that says which field of the layout it is.
    fn value((nth, part): (usize, Part)) -> FieldValue {
        match part.form {
            Form::Decimal => (nth as i64 - 3).into(),
            Form::Hexadecimal => (nth as i64 + 0xfff).into(),
            Form::Text | Form::Columns => format!("{}|{nth}", part.key).into(),
        }
    }

    #[test]
    fn layouts_of_a_name_follow_each_other_from_the_oldest_to_the_newest_and_differ() {
        let mut last: BTreeMap<&str, &Layout> = BTreeMap::new();
        for layout in layouts() {
            assert!(layout.text.ends_with('}'), "{}", layout.text);
            if let Some(before) = last.insert(layout.name, layout) {
                assert!(before.since < layout.since, "{}", layout.name);
                assert_ne!(before.text, layout.text, "{}", layout.name);
            }
        }
    }

    #[test]
    fn every_layout_comes_back() {
        for layout in layouts() {
            let values = parts(layout.text).enumerate().map(value).collect();
            let event = KernelEvent { name: layout.name, text: layout.text, values };
            assert_eq!(KernelEvent::parse(layout.name, &event.to_string()), Some(Ok(event)));
        }
    }

    #[test]
    fn the_first_field_that_is_wrong_is_told_by_the_newest_layout() {
        let read = |text| KernelEvent::parse("mm_vmscan_lru_isolate", text);
        assert_eq!(read("classzone=3 order=x"), Some(Err("nr_requested")));
        assert_eq!(read("classzone=3 order=x nr_requested=1"), Some(Err("order")));
        assert_eq!(read("order=1"), Some(Err("classzone")));
        assert_eq!(KernelEvent::parse("mm_vmscan_throttled", "nid=0"), None);
        let read = |text| KernelEvent::parse("mm_compaction_isolate_freepages", text);
        assert_eq!(read("range=(0x1 ~ 2) nr_scanned=1 nr_taken=0"), Some(Err("end_pfn")));
    }
}
