//! How runs end that do not end by themselves, and that nothing of them stays.

use std::path::Path;
use std::time::Duration;

use sys::{Result, SpawnOptions, Sys, SysError};
use sys_linux::{Config, RunError, Supervision, SyncScope, SysLinux, Told, Watch, Workload, run, system_info};
use units::Nanos;

/// Runs a program with a limit; `watch` may end it earlier.
fn run_with<F, Fut>(limit_s: u32, watch: Option<Watch<'_>>, program: F) -> std::result::Result<Workload, RunError>
where
    F: FnOnce(SysLinux) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let mount = tempfile::tempdir().unwrap();
    let info = system_info(None).unwrap();
    let config = Config {
        mount: mount.path().to_owned(),
        seed: 1,
        info,
        sync: SyncScope::TestMount,
        cgroup: None,
        tell: None,
        contents: None,
    };
    let series = Some(Nanos::millis(20));
    let mut enter = |_| Ok(());
    run(config, Supervision { enter: &mut enter, limit_s, series, watch }, program)
}

/// A process that sleeps until it is killed, and whose number the file `pid` below the system's temporary directory tells.
async fn sleeper(sys: SysLinux, place: std::path::PathBuf) {
    let process = sys.spawn(SpawnOptions::process("sleeper"), move |sys: SysLinux| async move {
        std::fs::write(&place, std::process::id().to_string()).unwrap();
        sys.sleep(Nanos::secs(1000)).await;
    });
    sys.join(process).await;
}

fn is_alive(place: &Path) -> bool {
    let pid = std::fs::read_to_string(place).expect("the process has started");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// Waits a moment for what was killed to be gone.
fn assert_gone(place: &Path) {
    for _ in 0..100 {
        if !is_alive(place) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("a process of the run stayed");
}

#[test]
fn a_run_that_takes_too_long_is_ended_with_all_its_processes() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("pid");
    let error = run_with(1, None, |sys| {
        let place = place.clone();
        async move {
            sys.phase("sleeping");
            sleeper(sys, place).await;
            Ok(())
        }
    });
    assert_eq!(error.unwrap_err().to_string(), "the workload was not finished after 1 s, in phase `sleeping`");
    assert_gone(&place);
}

#[test]
fn whoever_watches_a_run_can_end_it() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("pid");
    let seen = place.clone();
    let mut watch = |_: &Told<'_>| !seen.exists() || std::fs::read(&seen).unwrap().is_empty();
    let error = run_with(60, Some(&mut watch), |sys| {
        let place = place.clone();
        async move {
            sleeper(sys, place).await;
            Ok(())
        }
    });
    assert!(matches!(error, Err(RunError::Interrupted)), "{error:?}");
    assert_gone(&place);
}

#[test]
fn a_failure_in_any_thread_or_process_fails_the_run_with_its_phase() {
    for options in [SpawnOptions::thread("t"), SpawnOptions::process("p")] {
        let error = run_with(60, None, |sys| async move {
            sys.phase("filling");
            let other = sys.spawn(options, |sys: SysLinux| async move { sys.fail(SysError::NoSpace) });
            sys.join(other).await;
            sys.sleep(Nanos::secs(1000)).await;
            Ok(())
        });
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "the workload failed in phase `filling`: no space left on the device (ENOSPC)");
    }
}

#[test]
fn a_panic_and_an_error_returned_fail_the_run() {
    let error = run_with(60, None, |_| async { Err(SysError::NoEntry) }).unwrap_err();
    assert!(matches!(error, RunError::Workload { error: SysError::NoEntry, .. }), "{error}");
    let error = run_with(60, None, |sys| async move {
        let other = sys.spawn(SpawnOptions::process("p"), |_: SysLinux| async { panic!("as the test wants") });
        sys.join(other).await;
        Ok(())
    });
    assert!(matches!(error, Err(RunError::Workload { error: SysError::Killed, .. })), "{error:?}");
}

#[test]
fn a_process_cannot_be_given_a_pipe_that_its_parent_does_not_hold() {
    let error = run_with(60, None, |sys| async move {
        let pipe = sys.pipe().await?;
        sys.close_pipe(pipe).await?;
        let process = sys.spawn(SpawnOptions::process("p").stdin(pipe), |_: SysLinux| async {});
        sys.join(process).await;
        Ok(())
    });
    assert!(matches!(error, Err(RunError::Workload { error: SysError::BadFd, .. })), "{error:?}");
}

#[test]
fn a_run_has_samples_phases_series_and_both_snapshots() {
    let done = run_with(60, None, |sys| async move {
        sys.phase("one");
        sys.sample("m", 1.0);
        sys.sleep(Nanos::millis(100)).await;
        sys.phase("two");
        sys.sample("m", 2.0);
        Ok(())
    });
    let done = done.unwrap();
    assert_eq!(done.samples, [("m".to_string(), vec![1.0, 2.0])]);
    assert_eq!(done.phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert!(done.phases[1].at >= Nanos::millis(100) && done.elapsed >= done.phases[1].at);
    assert!(done.series.unwrap().rows.len() >= 2);
    for snapshot in [&done.before, &done.after] {
        assert!(snapshot.0.iter().any(|(name, text)| *name == "vmstat" && text.starts_with(b"nr_free_pages ")));
    }
}
