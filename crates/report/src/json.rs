//! JSON documents of the command line. Field names are fixed; more fields may be added.

use indexmap::IndexMap;
use observe::{Gauge, Manifest, Metric, RunDir};
use serde::Serialize;

use crate::finding::finding;

/// The document of `run --json`: one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunReport {
    /// mmtwin's version.
    pub version: String,
    /// The case of an experiment; left out of other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The column of the case's table: the experiment's name of the kernel, with the setting if several are compared; left out
    /// of other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// All inputs.
    pub manifest: Manifest,
    /// What the run answered with.
    pub metrics: Vec<Metric>,
    /// Growth of the counters of `/proc/vmstat`.
    pub vmstat: IndexMap<String, i64>,
    /// States of `/proc/vmstat` at both ends.
    pub gauges: IndexMap<String, Gauge>,
    /// Page frames of the model's machine; left out of a real kernel's run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Host bytes of the model's state per frame, everything counted, at the peak; left out of a real kernel's run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_frame: Option<f64>,
    /// Why kswapd was busy, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_kswapd_is_busy: Option<String>,
    /// What a scenario came to, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// Where the run directory is, if it was kept.
    pub run_dir: Option<String>,
    /// Wall time, in seconds; left out where the same inputs must give the same bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
}

/// What the model of a machine took of the host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HostUse {
    /// Page frames of the machine.
    pub frames: u64,
    /// Host bytes of all state.
    pub bytes: u64,
}

impl HostUse {
    /// Host bytes per page frame.
    pub fn bytes_per_frame(&self) -> f64 {
        self.bytes as f64 / self.frames as f64
    }
}

impl RunReport {
    /// The report of a run that lies, if anywhere, in `run_dir`; with its wall time, in seconds, if it is to tell that.
    pub fn of(run: &RunDir, host: Option<HostUse>, wall_s: Option<f64>, run_dir: Option<&str>) -> RunReport {
        let delta = run.delta();
        RunReport {
            version: run.manifest.version.clone(),
            case: None,
            column: None,
            manifest: run.manifest.clone(),
            metrics: run.metrics.clone(),
            vmstat: delta.counters,
            gauges: delta.gauges,
            frames: host.map(|host| host.frames),
            bytes_per_frame: host.map(|host| host.bytes_per_frame()),
            why_kswapd_is_busy: None,
            finding: finding(run),
            run_dir: run_dir.map(str::to_owned),
            wall_s,
        }
    }
}

/// A document as text: indented, with a newline at its end.
pub fn to_json(document: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::{Counters, Described, Program, Snapshot, World};

    #[test]
    fn a_run_has_the_fields_of_the_design() {
        let reading = |pairs: [(&str, u64); 2]| {
            let vmstat: Counters = pairs.into_iter().collect();
            Snapshot { vmstat: Some(vmstat), ..Snapshot::default() }
        };
        let run = RunDir {
            manifest: Manifest {
                version: "0.1.0".into(),
                world: World::Twin,
                workload: Program::default(),
                machine: Described::default(),
                kernel: Described::default(),
                sysctls: IndexMap::new(),
                seed: 1,
                iteration: 0,
                omitted: Vec::new(),
                virtual_s: 1.0,
                wall_s: None,
            },
            before: reading([("pgfault", 10), ("nr_dirty", 1)]),
            after: reading([("pgfault", 30), ("nr_dirty", 4)]),
            metrics: vec![Metric::new("elapsed_s", vec![1.0])],
            series: None,
        };
        let host = HostUse { frames: 1000, bytes: 24_500 };
        let text = to_json(&RunReport::of(&run, Some(host), None, Some("runs/0"))).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
        let expected = ["bytes_per_frame", "frames", "gauges", "manifest", "metrics", "run_dir", "version", "vmstat"];
        assert_eq!(keys, expected);
        assert_eq!(json["bytes_per_frame"], 24.5);
        assert_eq!(json["vmstat"]["pgfault"], 20);
        assert_eq!(json["gauges"]["nr_dirty"], serde_json::json!({ "before": 1, "after": 4 }));
        assert_eq!(json["metrics"][0]["mean"], 1.0);
        assert_eq!(json["manifest"]["world"], "twin");
        assert_eq!(json["run_dir"], "runs/0");
    }
}
