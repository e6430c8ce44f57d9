//! A pool of threads that keeps within a number of threads and of bytes, and gives its answers in the order of the jobs.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// What the pool may use.
pub(super) struct Limits {
    /// Jobs at a time.
    pub(super) at_once: usize,
    /// Bytes of all jobs that run; a job that needs more runs alone.
    pub(super) bytes: u64,
}

/// Calls `work` for each of `jobs`; `need` says how many bytes one takes. Once `stop` says so no job is started, and
/// those that were not have no answer.
pub(super) fn run_all<J: Sync, R: Send>(
    jobs: &[J],
    need: impl Fn(&J) -> u64 + Sync,
    limits: &Limits,
    stop: impl Fn() -> bool + Sync,
    work: impl Fn(&J) -> R + Sync,
) -> Vec<Option<R>> {
    let queue = Queue { state: Mutex::default(), freed: Condvar::new(), limit: limits.bytes };
    let answers: Mutex<Vec<Option<R>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..limits.at_once.min(jobs.len()) {
            scope.spawn(|| {
                while let Some((number, _reserved)) = queue.take(jobs, &need, &stop) {
                    let answer = work(&jobs[number]);
                    lock(&answers)[number] = Some(answer);
                }
            });
        }
    });
    answers.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The jobs that wait: those from `next` on.
struct Queue {
    state: Mutex<State>,
    freed: Condvar,
    limit: u64,
}

#[derive(Default)]
struct State {
    next: usize,
    bytes: u64,
}

impl Queue {
    /// The next job, and its bytes, once there is room for them.
    fn take<J>(&self, jobs: &[J], need: impl Fn(&J) -> u64, stop: impl Fn() -> bool) -> Option<(usize, Reserved<'_>)> {
        let mut state = lock(&self.state);
        loop {
            let number = state.next;
            let job = jobs.get(number).filter(|_| !stop())?;
            let bytes = need(job);
            if state.bytes == 0 || state.bytes.saturating_add(bytes) <= self.limit {
                state.next += 1;
                state.bytes = state.bytes.saturating_add(bytes);
                return Some((number, Reserved { queue: self, bytes }));
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Bytes of a job that runs. They are given back even if it panics: others wait for them.
struct Reserved<'a> {
    queue: &'a Queue,
    bytes: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        lock(&self.queue.state).bytes -= self.bytes;
        self.queue.freed.notify_all();
    }
}

/// No code that can panic runs under these locks, so that a poisoned one is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;

    /// Runs jobs that need as many bytes as their number; gives the answers, the most jobs and the most bytes at once.
    fn run(jobs: &[u64], limits: &Limits) -> (Vec<Option<u64>>, usize, u64) {
        let (running, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
        let (running_max, bytes_max) = (AtomicUsize::new(0), AtomicU64::new(0));
        let work = |job: &u64| {
            running_max.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
            bytes_max.fetch_max(bytes.fetch_add(*job, SeqCst) + job, SeqCst);
            thread::sleep(Duration::from_millis(2));
            running.fetch_sub(1, SeqCst);
            bytes.fetch_sub(*job, SeqCst);
            job * 2
        };
        let answers = run_all(jobs, |job| *job, limits, || false, work);
        (answers, running_max.into_inner(), bytes_max.into_inner())
    }

    #[test]
    fn answers_are_in_the_order_of_the_jobs_whatever_the_threads() {
        let jobs: Vec<u64> = (1..=40).collect();
        let expected: Vec<Option<u64>> = jobs.iter().map(|job| Some(job * 2)).collect();
        for at_once in [1, 2, 7, 100] {
            let (answers, most, _) = run(&jobs, &Limits { at_once, bytes: u64::MAX });
            assert_eq!(answers, expected);
            assert!(most <= at_once, "{most} at once");
        }
    }

    #[test]
    fn bytes_are_kept_within_their_limit_but_a_large_job_runs_alone() {
        let (answers, _, bytes) = run(&[6, 6, 3, 3, 3, 6, 4], &Limits { at_once: 4, bytes: 10 });
        assert!(answers.iter().all(Option::is_some) && bytes <= 10, "{bytes} bytes at once");
        let (answers, most, _) = run(&[50, 60, 70], &Limits { at_once: 4, bytes: 10 });
        assert_eq!((answers, most), (vec![Some(100), Some(120), Some(140)], 1));
    }

    #[test]
    fn a_job_that_panics_gives_its_bytes_back() {
        let done = AtomicUsize::new(0);
        let work = |job: &u64| {
            assert!(*job != 7, "this job fails, as it should");
            done.fetch_add(1, SeqCst);
        };
        let all = || run_all(&[7, 8, 9, 10], |job| *job, &Limits { at_once: 2, bytes: 10 }, || false, work);
        assert!(catch_unwind(AssertUnwindSafe(all)).is_err());
        assert_eq!(done.into_inner(), 3, "of the others");
    }

    #[test]
    fn once_stopped_nothing_is_started() {
        let done = AtomicUsize::new(0);
        let stop = || done.load(SeqCst) >= 3;
        let work = |_: &u64| done.fetch_add(1, SeqCst);
        let answers = run_all(&[1; 10], |_| 1, &Limits { at_once: 1, bytes: 10 }, stop, work);
        assert_eq!(answers.iter().flatten().count(), 3);
        assert!(run_all(&[1; 3], |_| 1, &Limits { at_once: 2, bytes: 1 }, || true, work).iter().all(Option::is_none));
    }
}
