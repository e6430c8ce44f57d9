//! fio's job files as text: sections, options, comments.
//!
//! Rule: a section `[name]` is a job; what stands in `[global]` sections above it holds for it too, unless it says
//! otherwise. An option is `name=value`, or a name alone, which means yes. `;` and `#` begin a comment.
//! Source: HOWTO, "Job file format"; `__parse_jobs_ini()`, `strip_blank_end()`, init.c, fio 3.33.
//! Omitted: `include`, environment variables and arithmetic, each of which is refused.
//!
//! Libraries for INI files lose the lines that an error has to name, and know neither repeated global sections nor options
//! without a value.

use thiserror::Error;

/// What is wrong with a job file.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{line}: {what}")]
pub struct JobFileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there, and what was expected.
    pub what: String,
}

/// An error at a line.
pub(super) fn wrong<T>(line: usize, what: impl Into<String>) -> Result<T, JobFileError> {
    Err(JobFileError { line, what: what.into() })
}

/// An option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// Line of the file, from 1.
    pub(super) line: usize,
    /// Its name.
    pub(super) name: String,
    /// Its value, if it has one.
    pub(super) value: Option<String>,
}

/// A job, with the options of the global sections above it before its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Section {
    /// Line of its head.
    pub(super) line: usize,
    /// Its name.
    pub(super) name: String,
    /// Its options; later ones win.
    pub(super) entries: Vec<Entry>,
}

/// The jobs of a file, in its order.
pub(super) fn sections(text: &str) -> Result<Vec<Section>, JobFileError> {
    let mut global: Vec<Entry> = Vec::new();
    let mut jobs: Vec<Section> = Vec::new();
    let mut in_global = None;
    for (number, raw) in text.lines().enumerate() {
        let line = number + 1;
        let content = raw.split([';', '#']).next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        if let Some(head) = content.strip_prefix('[') {
            let Some(name) = head.strip_suffix(']').filter(|name| !name.trim().is_empty()) else {
                return wrong(line, format!("`{content}`: expected a section such as [job]"));
            };
            in_global = Some(name == "global");
            if name != "global" {
                jobs.push(Section { line, name: name.to_string(), entries: global.clone() });
            }
            continue;
        }
        let entry = entry(line, content)?;
        match (in_global, jobs.last_mut()) {
            (Some(true), _) => global.push(entry),
            (Some(false), Some(job)) => job.entries.push(entry),
            _ => return wrong(line, format!("`{content}`: expected a section such as [job] above the first option")),
        }
    }
    if jobs.is_empty() {
        return wrong(text.lines().count().max(1), "expected a job, a section such as [job], found none");
    }
    Ok(jobs)
}

fn entry(line: usize, content: &str) -> Result<Entry, JobFileError> {
    let (name, value) = match content.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim().to_string())),
        None => (content, None),
    };
    if name.starts_with("include ") {
        return wrong(line, "include: expected the options themselves; other files are not read");
    }
    if content.contains('$') {
        return wrong(line, format!("`{content}`: expected a value without variables"));
    }
    if name.is_empty() || name.contains(char::is_whitespace) {
        return wrong(line, format!("`{content}`: expected name=value"));
    }
    Ok(Entry { line, name: name.to_string(), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(section: &Section) -> Vec<(usize, &str, Option<&str>)> {
        section.entries.iter().map(|e| (e.line, e.name.as_str(), e.value.as_deref())).collect()
    }

    #[test]
    fn a_job_has_the_options_of_all_global_sections_above_it() {
        let text =
            "; a comment\n[global]\nbs=4k # four\n\n[a]\nrw = read\ntime_based\n[global]\nbs=8k\n[b]\n  rw=write\n";
        let jobs = sections(text).unwrap();
        assert_eq!(jobs.iter().map(|job| (job.line, job.name.as_str())).collect::<Vec<_>>(), [(5, "a"), (10, "b")]);
        assert_eq!(options(&jobs[0]), [(3, "bs", Some("4k")), (6, "rw", Some("read")), (7, "time_based", None)]);
        assert_eq!(options(&jobs[1]), [(3, "bs", Some("4k")), (9, "bs", Some("8k")), (11, "rw", Some("write"))]);
    }

    #[test]
    fn what_is_no_job_file_is_refused_with_its_line() {
        for (text, line, told) in [
            ("rw=read\n", 1, "expected a section"),
            ("[a\nrw=read\n", 1, "expected a section"),
            ("[a]\n=3\n", 2, "expected name=value"),
            ("[a]\nrw read\n", 2, "expected name=value"),
            ("[a]\ninclude other.fio\n", 2, "include: expected the options themselves"),
            ("[a]\nsize=${SIZE}\n", 2, "without variables"),
            ("[global]\nbs=4k\n", 2, "expected a job"),
            ("", 1, "expected a job"),
        ] {
            let error = sections(text).unwrap_err();
            assert!(error.line == line && error.what.contains(told), "{text:?}: {error}");
        }
    }
}
