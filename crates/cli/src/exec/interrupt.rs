//! Ctrl-C: the first ends what runs at its next step, the second ends the program.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Failure, INTERRUPTED};

/// Whether the user has had enough.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts listening; once in a process.
    pub(crate) fn install() -> Result<Interrupt, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&flag);
        let on_signal = move || {
            if raised.load(Ordering::Relaxed) {
                std::process::exit(INTERRUPTED.into());
            }
            // Before anybody sees the flag, and says what came of it. Without a standard error there is nobody to tell.
            let _ = writeln!(io::stderr(), "mmtwin: stopping; Ctrl-C again ends at once");
            raised.store(true, Ordering::Relaxed);
        };
        ctrlc::set_handler(on_signal).map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(Interrupt(flag))
    }

    /// Whether it was raised.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
