//! `--on host`: the workload in a cgroup of this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use guest::{EVENTS_FILE, Results};
use observe::{Described, World, chosen_word};
use sys_linux::collect::{Histograms, Recording, TRIGGERS};
use sys_linux::{Config, RunError, Supervision, SyncScope, Told, system_info};
use twin::Progress;
use units::{Bytes, Nanos};
use workloads::Workload;

use super::cgroup::{Group, Place};
use super::keep::{Evidence, keep};
use super::plan::Planned;
use super::{Kernel, Watch, settings};
use crate::args::RunArgs;
use crate::exec::{Answer, Done, Stopwatch};
use crate::failure::Failure;
use crate::variants::{Variant, variants};

const SERIES: Nanos = Nanos::secs(1);
const TRACEFS: &str = "/sys/kernel/tracing";

/// This machine's kernel.
struct Host<'a> {
    args: &'a RunArgs,
    /// Below it every run makes its files.
    dir: PathBuf,
    release: String,
    /// Memory that the workload sees and may use.
    limit: Option<Bytes>,
    /// Where a cgroup is made for it; none if this program's own has a limit already.
    place: Option<Place>,
    variant: Variant,
    settings: Vec<(String, String)>,
}

/// This machine, if what was asked for may be done to it.
pub(super) fn kernels(args: &RunArgs) -> Result<Vec<Box<dyn Kernel + '_>>, Failure> {
    let real = &args.real;
    let bad = |message: String| Failure::bad_input(format!("--on host: {message}"));
    let dir = real.dir.clone().ok_or_else(|| bad("expected --dir DIR, a directory for the workload's files".into()))?;
    if !dir.is_dir() {
        return Err(bad(format!("--dir {}: expected a directory, found none", dir.display())));
    }
    if !args.common.sysctls.is_empty() && !real.i_know {
        return Err(bad("--set changes this machine for everybody while it runs; --i-know allows it".into()));
    }
    let place = Place::find();
    let own = place.as_ref().and_then(Place::limit);
    if own.is_none() && real.memory_limit.is_none() && !real.i_know {
        let without = "without --memory-limit a workload sized by the memory fills this machine's";
        return Err(bad(format!("{without}; --i-know allows it")));
    }
    let limited = real.memory_limit.is_some();
    let place = if limited { Some(place.ok_or_else(|| bad(no_cgroups(real.memory_limit)))?) } else { None };
    let limit = real.memory_limit.into_iter().chain(own).min();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").map_err(|e| bad(format!("osrelease: {e}")))?;
    let host = |variant: Variant| -> Result<Box<dyn Kernel>, Failure> {
        let (dir, release, place) = (dir.clone(), release.trim().to_string(), place.clone());
        let settings = settings::files(&variant.sysctls)?;
        Ok(Box::new(Host { args, dir, release, limit, place, variant, settings }))
    };
    variants(&args.common.sysctls).into_iter().map(host).collect()
}

fn no_cgroups(limit: Option<Bytes>) -> String {
    let size = limit.map_or(0, |limit| limit.0);
    format!(
        "this user cannot make a memory cgroup here; start it in one: \
        `systemd-run --user --scope -p MemoryMax={size} mmtwin run ...` without --memory-limit"
    )
}

impl Kernel for Host<'_> {
    fn kernel(&self) -> String {
        format!("host-{}", self.release)
    }

    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn run(&self, planned: &Planned, go_on: Watch<'_>) -> Answer {
        let watch = Stopwatch::start();
        match self.measure(planned, go_on) {
            Ok(Some((results, files))) => Some(self.keep(planned, results, files, watch.seconds())),
            Ok(None) => None,
            Err(failure) => Some(Err(failure)),
        }
    }
}

type Measured = (Results, BTreeMap<String, Vec<u8>>);

impl Host<'_> {
    fn measure(&self, planned: &Planned, go_on: Watch<'_>) -> Result<Option<Measured>, Failure> {
        let args = self.args;
        let (workload, _) = Workload::new(&args.workload, &args.params)?;
        let mount = tempfile::Builder::new().prefix("mmtwin-").tempdir_in(&self.dir);
        let mount = mount.map_err(|error| Failure::failed(format!("{}: {error}", self.dir.display())))?;
        let group = self.place.as_ref().zip(self.limit).map(|(place, limit)| place.make(limit)).transpose();
        let group =
            group.map_err(|error| Failure::failed(format!("--on host: {error}; {}", no_cgroups(self.limit))))?;
        let config = Config {
            mount: mount.path().to_owned(),
            seed: sys::workload_seed(args.common.seed, planned.iteration),
            info: system_info(self.limit).map_err(Failure::failed)?,
            sync: SyncScope::TestMount,
            cgroup: group.as_ref().and_then(Group::own_children),
            tell: None,
            contents: None,
        };
        let _settings = Restored::write(&self.settings)?;
        let (histograms, refused) = Histograms::start(Path::new(TRACEFS), TRIGGERS);
        let recording = Recording::begin(Path::new(TRACEFS), &args.tracepoints());
        let mut watch = |told: &Told<'_>| go_on(&Progress { now: told.now, phase: told.phase, done: told.done });
        let supervision = Supervision {
            enter: &mut |pid| group.as_ref().map_or(Ok(()), |group| group.enter(pid)),
            limit_s: args.real.time_limit_s(),
            series: Some(SERIES),
            watch: Some(&mut watch),
        };
        let done = match sys_linux::run(config, supervision, |sys| workload.run(sys)) {
            Ok(done) => done,
            Err(RunError::Interrupted) => return Ok(None),
            Err(error) => return Err(Failure::failed(error)),
        };
        let refused = refused.first().map(|(_, error)| format!("{} tracepoint histograms: {error}", refused.len()));
        let mut missing = Vec::from_iter(refused);
        let events = Recording::end(recording, &mut missing).map(|text| (EVENTS_FILE.to_string(), text));
        let counted = histograms.read().map_err(|error| Failure::failed(format!("tracepoint histograms: {error}")))?;
        let (results, files) = Results::of(done, missing);
        let counted = counted.into_iter().map(|(name, content)| (format!("hist/{name}"), content));
        let files = files.into_iter().chain(counted).chain(events).collect();
        Ok(Some((results, files)))
    }

    fn keep(
        &self,
        planned: &Planned,
        results: Results,
        files: BTreeMap<String, Vec<u8>>,
        wall_s: f64,
    ) -> Result<Done, Failure> {
        let limit = self.limit.map_or("none".to_string(), |limit| limit.0.to_string());
        let evidence = Evidence {
            world: World::Host,
            kernel: Described {
                name: self.kernel(),
                toml: format!("release = {}\nmemory_limit = {limit:?}\n", profile::quoted(&self.release)),
            },
            sysctls: self.variant.sysctls.clone(),
            results,
            files,
            omitted: vec![
                "the machine is this host: counters are of all that runs on it, not of the workload alone".into(),
            ],
            wall_s,
        };
        keep(self.args, planned, evidence)
    }
}

/// Settings of this machine that get their old values back.
struct Restored(Vec<(String, String)>);

impl Restored {
    fn write(settings: &[(String, String)]) -> Result<Restored, Failure> {
        let mut old = Restored(Vec::new());
        for (path, value) in settings {
            let failed = |error: std::io::Error| Failure::failed(format!("{path}: `{value}`: {error}"));
            let before = fs::read_to_string(path).map_err(failed)?;
            fs::write(path, value).map_err(failed)?;
            // Files in sysfs list all words, the one in force in brackets.
            let value = chosen_word(&before).unwrap_or(before.trim());
            old.0.push((path.clone(), value.to_string()));
        }
        Ok(old)
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        for (path, value) in self.0.iter().rev() {
            // It could be written a moment ago, with another value.
            let _ = fs::write(path, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_get_their_old_values_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
        fs::write(path("plain"), "60\n").unwrap();
        fs::write(path("words"), "always [madvise] never\n").unwrap();
        let settings = [(path("plain"), "10".to_string()), (path("words"), "never".to_string())];
        let restored = Restored::write(&settings).unwrap();
        assert_eq!(fs::read_to_string(path("plain")).unwrap(), "10");
        drop(restored);
        assert_eq!(fs::read_to_string(path("plain")).unwrap(), "60");
        assert_eq!(fs::read_to_string(path("words")).unwrap(), "madvise");
    }
}
