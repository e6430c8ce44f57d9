//! Steps of programs that use memory cgroups.

use std::future::Future;

use sys::{Cgroup, SpawnOptions, Sys, Thread};

use crate::steps::start;

/// A number of a group's file: of the line that begins with this word, or of the file itself if the word is empty. A line that
/// is not there is 0, `max` infinite.
pub(crate) async fn value<S: Sys>(sys: &S, group: Cgroup, file: &str, word: &str) -> sys::Result<f64> {
    Ok(value_in(&sys.cgroup_file(group, file).await?, word))
}

fn value_in(text: &str, word: &str) -> f64 {
    let of_line = |line: &str| Some(line.strip_prefix(word)?.split_whitespace().next()?.to_string());
    let number = text.lines().find_map(|line| match word {
        "" => Some(line.trim().to_string()),
        _ => of_line(line).filter(|_| line[word.len()..].starts_with(' ')),
    });
    match number.as_deref() {
        Some("max") => f64::INFINITY,
        Some(number) => number.parse().unwrap_or(0.0),
        None => 0.0,
    }
}

/// A process that may be killed for want of memory without an end to the run.
pub(crate) fn mortal(name: &str) -> SpawnOptions {
    SpawnOptions { may_be_killed: true, ..SpawnOptions::process(name) }
}

/// Starts a process in a group; its error fails the run.
pub(crate) fn start_in<S, F, Fut>(sys: &S, group: Cgroup, options: SpawnOptions, body: F) -> Thread
where
    S: Sys,
    F: FnOnce(S) -> Fut + Send + 'static,
    Fut: Future<Output = sys::Result<()>> + 'static,
{
    start(sys, options, move |sys: S| async move {
        sys.cgroup_enter(group).await?;
        body(sys).await
    })
}

/// Runs a process in a group to its end.
pub(crate) async fn run_in<S, F, Fut>(sys: &S, group: Cgroup, options: SpawnOptions, body: F)
where
    S: Sys,
    F: FnOnce(S) -> Fut + Send + 'static,
    Fut: Future<Output = sys::Result<()>> + 'static,
{
    let process = start_in(sys, group, options, body);
    sys.join(process).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_its_line() {
        let events = "low 0\nhigh 12\nmax 7\noom 1\noom_kill 3\n";
        assert_eq!([value_in(events, "high"), value_in(events, "oom_kill"), value_in(events, "oom")], [12.0, 3.0, 1.0]);
        assert_eq!(value_in(events, "oom_group_kill"), 0.0);
        assert_eq!([value_in("4096\n", ""), value_in("max\n", "")], [4096.0, f64::INFINITY]);
    }
}
