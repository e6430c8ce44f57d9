//! A job file in the guest: the real fio runs it, in the workload's first process.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use sys::{Sys, SysError};
use sys_linux::SysLinux;

use crate::mounts;

/// The program, at the same place in the guest as on the host.
pub const FIO: &str = "/usr/bin/fio";
/// The workload that it runs.
pub const FIO_WORKLOAD: &str = "fio";

const JOB: &str = "/job.fio";
const ANSWER: &str = "/fio.json";

/// Puts the job file where fio finds it, and makes the directories that it names, as the twin does.
pub(crate) fn prepare(params: &[(String, String)], directories: &[String]) -> Result<(), String> {
    let text = params.iter().find(|(name, _)| name == "job").map_or("", |(_, text)| text.as_str());
    fs::write(JOB, text).map_err(|error| format!("{JOB}: {error}"))?;
    for directory in directories {
        let path = format!("{}/{directory}", mounts::DATA);
        fs::create_dir_all(&path).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

/// Runs the job file, and records what fio says of each of its jobs.
pub(crate) async fn run(sys: SysLinux) -> sys::Result<()> {
    sys.phase("fio");
    let mut command = Command::new(FIO);
    command.args(["--output-format=json", &format!("--output={ANSWER}"), JOB]);
    // What it complains of goes to the console.
    let status = command.current_dir(mounts::DATA).stdin(Stdio::null()).status().map_err(|_| SysError::Io)?;
    if !status.success() {
        return Err(SysError::Io);
    }
    let text = fs::read_to_string(ANSWER).map_err(|_| SysError::Io)?;
    for (metric, value) in samples(&text).ok_or(SysError::Io)? {
        sys.sample(metric, value);
    }
    Ok(())
}

/// What fio says of each job. A sum over the clones of a job (`group_reporting`) is shared among them.
fn samples(answer: &str) -> Option<Vec<(&'static str, f64)>> {
    // Warnings may stand before the document.
    let document: Value = serde_json::from_str(&answer[answer.find('{')?..]).ok()?;
    let option = |job: &Value, name: &str| {
        let of = |place: &Value| place.get(name).and_then(Value::as_str).map(str::to_string);
        of(&job["job options"]).or_else(|| of(&document["global options"]))
    };
    let mut samples = Vec::new();
    for job in document["jobs"].as_array()? {
        let options = [&job["job options"], &document["global options"]];
        let grouped = options.iter().any(|given| given.get("group_reporting").is_some());
        let clones = option(job, "numjobs").and_then(|n| n.parse::<u32>().ok()).filter(|_| grouped).unwrap_or(1);
        for (way, iops, latency) in
            [("read", "fio_read_iops", "fio_read_lat_us"), ("write", "fio_write_iops", "fio_write_lat_us")]
        {
            if job[way]["total_ios"].as_u64()? > 0 {
                let (rate, mean_us) = (job[way]["iops"].as_f64()?, job[way]["clat_ns"]["mean"].as_f64()? / 1000.0);
                for _ in 0..clones {
                    samples.extend([(iops, rate / f64::from(clones)), (latency, mean_us)]);
                }
            }
        }
    }
    Some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fio_says_becomes_samples() {
        let way =
            |ios: u64, iops: f64, ns: f64| serde_json::json!({"total_ios": ios, "iops": iops, "clat_ns": {"mean": ns}});
        let job = |options: Value| serde_json::json!({"read": way(10, 100.0, 2500.0), "write": way(0, 0.0, 0.0), "job options": options});
        let document = serde_json::json!({
            "global options": {"numjobs": "4"},
            "jobs": [job(serde_json::json!({})), job(serde_json::json!({"group_reporting": "1"}))],
        });
        let text = format!("fio: a warning\n{document}\n");
        let share = [("fio_read_iops", 25.0), ("fio_read_lat_us", 2.5)];
        let expected = [vec![("fio_read_iops", 100.0), ("fio_read_lat_us", 2.5)], share.repeat(4)].concat();
        assert_eq!(samples(&text), Some(expected));
        assert_eq!(samples("no document"), None);
    }
}
