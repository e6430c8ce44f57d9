//! Parameters of workloads: names and defaults as data, values checked where they are read.

use std::collections::BTreeMap;

use thiserror::Error;
use units::{Bytes, did_you_mean};

use crate::fio::JobFileError;

/// One parameter of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Name on the command line.
    pub name: &'static str,
    /// Default, as it would be typed; `auto` follows the machine.
    pub default: &'static str,
    /// What it means, with its unit.
    pub doc: &'static str,
}

/// Why parameters were refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ParamError {
    /// No workload has this name.
    #[error("unknown workload `{name}`; {closest}expected one of {expected}")]
    UnknownWorkload {
        /// What was asked for.
        name: String,
        /// What may have been meant, as a question.
        closest: String,
        /// All there are.
        expected: String,
    },
    /// The workload has no such parameter.
    #[error("workload {workload} has no parameter `{name}`; {closest}it has {expected}")]
    Unknown {
        /// The workload.
        workload: &'static str,
        /// What was given.
        name: String,
        /// What may have been meant, as a question.
        closest: String,
        /// All it has.
        expected: String,
    },
    /// A job file of fio cannot be used.
    #[error("job:{error}")]
    JobFile {
        /// The line, and what is wrong there.
        error: JobFileError,
    },
    /// A value is not what the parameter takes.
    #[error("{name}={given}: expected {expected}")]
    Value {
        /// The parameter.
        name: String,
        /// What was given.
        given: String,
        /// What it takes.
        expected: String,
    },
}

/// The names of parameters, in words.
fn names(spec: &[Param]) -> String {
    if spec.is_empty() {
        return "none".to_string();
    }
    spec.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
}

/// Values for the parameters of one workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Params {
    workload: &'static str,
    values: BTreeMap<&'static str, String>,
}

impl Params {
    /// The defaults of `spec`, changed as `given` says.
    pub fn new(
        workload: &'static str,
        spec: &'static [Param],
        given: &[(String, String)],
    ) -> Result<Params, ParamError> {
        let mut values: BTreeMap<&'static str, String> = spec.iter().map(|p| (p.name, p.default.to_string())).collect();
        for (name, value) in given {
            let known = spec.iter().find(|p| p.name == name).ok_or_else(|| ParamError::Unknown {
                workload,
                name: name.clone(),
                closest: did_you_mean(name, spec.iter().map(|param| param.name)),
                expected: names(spec),
            })?;
            values.insert(known.name, value.clone());
        }
        Ok(Params { workload, values })
    }

    /// Every parameter with its value as text, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The workload that has them.
    pub(crate) fn workload(&self) -> &'static str {
        self.workload
    }

    pub(crate) fn text(&self, name: &'static str) -> &str {
        &self.values[name]
    }

    pub(crate) fn refuse<T>(&self, name: &'static str, expected: String) -> Result<T, ParamError> {
        Err(ParamError::Value { name: name.to_string(), given: self.text(name).to_string(), expected })
    }

    /// A whole number from `lo` to `hi`.
    pub fn number(&self, name: &'static str, lo: u64, hi: u64) -> Result<u64, ParamError> {
        match self.text(name).parse() {
            Ok(n) if (lo..=hi).contains(&n) => Ok(n),
            _ => self.refuse(name, format!("a whole number from {lo} to {hi}")),
        }
    }

    /// A whole number from `lo` to `hi`, or `auto`.
    pub fn number_or_auto(&self, name: &'static str, lo: u64, hi: u64) -> Result<Option<u64>, ParamError> {
        if self.text(name) == "auto" { Ok(None) } else { self.number(name, lo, hi).map(Some) }
    }

    /// A fraction above 0 up to `hi`.
    pub fn fraction(&self, name: &'static str, hi: f64) -> Result<f64, ParamError> {
        match self.text(name).parse::<f64>() {
            Ok(x) if x > 0.0 && x <= hi => Ok(x),
            _ => self.refuse(name, format!("a number above 0 and at most {hi}")),
        }
    }

    /// `yes` or `no`.
    pub fn flag(&self, name: &'static str) -> Result<bool, ParamError> {
        match self.text(name) {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => self.refuse(name, "yes or no".to_string()),
        }
    }

    /// One of some words, each of which stands for a value.
    pub fn choice<T: Copy>(&self, name: &'static str, words: &[(&str, T)]) -> Result<T, ParamError> {
        let expected = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let found = words.iter().find(|(word, _)| *word == self.text(name)).map(|(_, value)| *value);
        found.map_or_else(|| self.refuse(name, format!("one of {}", expected())), Ok)
    }

    /// A size in bytes with an optional suffix (see [`Bytes::parse`]), from `lo` to `hi`.
    pub fn size(&self, name: &'static str, lo: Bytes, hi: Bytes) -> Result<Bytes, ParamError> {
        match Bytes::parse(self.text(name)) {
            Ok(size) if size >= lo && size <= hi => Ok(size),
            _ => self.refuse(name, format!("a size in bytes from {lo} to {hi}")),
        }
    }

    /// A size from `lo` to `hi`, or nothing for `none`.
    pub fn size_or_none(&self, name: &'static str, lo: Bytes, hi: Bytes) -> Result<Option<Bytes>, ParamError> {
        if self.text(name) == "none" { Ok(None) } else { self.size(name, lo, hi).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &[Param] = &[Param { name: "size", default: "64KiB", doc: "" }];

    fn size_of(text: &str) -> Result<Bytes, ParamError> {
        let given = [("size".to_string(), text.to_string())];
        Params::new("test", SPEC, &given)?.size("size", Bytes::mib(1), Bytes::gib(1024))
    }

    #[test]
    fn a_size_is_read_from_the_least_to_the_most_that_the_message_names() {
        assert_eq!(size_of("1MiB"), Ok(Bytes::mib(1)));
        assert_eq!(size_of("1TiB"), Ok(Bytes::gib(1024)));
        for bad in ["0", "64KiB", "1048575", "2TiB", "4x", "", "99999999999999999999g", "18446744073709551615g"] {
            let error = size_of(bad).unwrap_err().to_string();
            assert_eq!(error, format!("size={bad}: expected a size in bytes from 1MiB to 1TiB"));
        }
    }

    #[test]
    fn an_unknown_parameter_lists_those_there_are() {
        let given = [("sise".to_string(), "1".to_string())];
        let error = Params::new("test", SPEC, &given).unwrap_err();
        assert_eq!(error.to_string(), "workload test has no parameter `sise`; did you mean `size`? it has size");
        let error = Params::new("test", &[], &given).unwrap_err();
        assert_eq!(error.to_string(), "workload test has no parameter `sise`; it has none");
    }
}
