//! What things may be called: names are told in one line, and are part of the path of a run that is kept.

use toml::Spanned;

use crate::ProfileError;
use crate::text::Text;

/// Most bytes of a name. A file's name may have 255; a run's folder has the names of a workload and a machine, and what is otherwise
/// than the machine's own.
const NAME_BYTES_MAX: usize = 128;
/// Most bytes of a case's name, which is a folder's by itself.
const CASE_BYTES_MAX: usize = 255;

impl Text {
    /// Checks the name of a machine, a kernel and the like, which `key` gives.
    pub(crate) fn check_name(&self, key: &str, name: &Spanned<String>) -> Result<(), ProfileError> {
        if is_one_line(name.get_ref(), NAME_BYTES_MAX) && !name.get_ref().contains('/') {
            return Ok(());
        }
        let message = format!("expected a name of 1 to {NAME_BYTES_MAX} bytes without `/` and control characters");
        Err(self.invalid(name.span(), key, message))
    }

    /// Checks the name of a case. Published ones have slashes.
    pub(crate) fn check_case_name(&self, key: &str, name: &Spanned<String>) -> Result<(), ProfileError> {
        if is_one_line(name.get_ref(), CASE_BYTES_MAX) {
            return Ok(());
        }
        let message = format!("expected a name of 1 to {CASE_BYTES_MAX} bytes without control characters");
        Err(self.invalid(name.span(), key, message))
    }
}

/// Whether something can be read in it, in one line of so many bytes.
fn is_one_line(name: &str, bytes_max: usize) -> bool {
    !name.trim().is_empty() && name.len() <= bytes_max && !name.chars().any(char::is_control)
}
