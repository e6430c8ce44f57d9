//! Panics as errors, without the noise that a hundred of them make while a case shrinks.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Message and place of the last panic of a thread that catches them.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs `call`; a panic comes back as its message and place.
pub(super) fn catch<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            let caught = LAST.with_borrow_mut(|last| last.as_mut().map(|text| *text = info.to_string()).is_some());
            if !caught {
                usual(info);
            }
        }));
    });
    LAST.set(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(call));
    let message = LAST.take().unwrap_or_default();
    result.unwrap_or(Err(message))
}
