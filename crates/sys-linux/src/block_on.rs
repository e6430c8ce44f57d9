//! Runs a future whose every await is ready at once.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Runs `future` to its end on this thread.
///
/// # Panics
/// If the future is not ready: each call of [`SysLinux`](crate::SysLinux) blocks, so nothing would ever wake it.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a workload awaited something other than its Sys"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_of_blocking_calls_is_ready_at_once() {
        assert_eq!(block_on(async { async { 3 }.await + 4 }), 7);
    }

    #[test]
    #[should_panic(expected = "other than its Sys")]
    fn a_future_that_waits_for_something_else_is_refused() {
        block_on(std::future::pending::<()>());
    }
}
