//! The initramfs: agent, modules, job.

use std::path::Path;

use guest::{FIO_WORKLOAD, JOB_FILE, Job, MODULES_DIR};
use sha2::{Digest, Sha256};

use units::Bytes;

use crate::agent;
use crate::cpio::Cpio;
use crate::error::QemuError;
use crate::modules::Module;

/// How many times the size of its initramfs a guest's memory has to be.
const TIMES: u64 = 3;

/// An initramfs, and what identifies the agent in it.
pub(crate) struct Initramfs {
    pub(crate) bytes: Vec<u8>,
    /// SHA-256 of the agent with its libraries, in hexadecimal.
    pub(crate) agent_hash: String,
}

impl Initramfs {
    /// Refuses a guest that cannot hold it: for a while it is there twice, packed and in a file system that may take half of
    /// the memory, and the kernel needs some too.
    pub(crate) fn check_fits(&self, memory: Bytes) -> Result<(), QemuError> {
        let size = self.bytes.len() as u64;
        if size * TIMES <= memory.0 {
            return Ok(());
        }
        let (found, needed, mib) = (memory.0 >> 20, (size * TIMES).div_ceil(1 << 20), size >> 20);
        Err(QemuError::Input(format!(
            "a guest's memory: the programs that it boots with take {mib} MiB: expected at least {needed} MiB, found {found} MiB"
        )))
    }
}

/// The workload `fio` is carried out by the real one.
fn needs_fio(job: &Job) -> bool {
    job.workload == FIO_WORKLOAD
}

pub(crate) fn build(agent: &Path, modules: &[Module], job: &Job) -> Result<Initramfs, QemuError> {
    let mut cpio = Cpio::default();
    let mut hash = Sha256::new();
    for (path, content) in agent::files(agent, needs_fio(job))? {
        cpio.file(&path, &content);
        hash.update(&content);
    }
    for dir in ["/proc", "/sys", "/dev"] {
        cpio.directory(dir);
    }
    for module in modules {
        cpio.file(&format!("{MODULES_DIR}/{}", module.file), &module.content);
    }
    cpio.file(JOB_FILE, &serde_json::to_vec(job).expect("plain data"));
    let agent_hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Initramfs { bytes: cpio.finish(), agent_hash })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_is_too_small_is_refused() {
        let initramfs = Initramfs { bytes: vec![0; 10 << 20], agent_hash: String::new() };
        assert!(initramfs.check_fits(Bytes::mib(30)).is_ok());
        let error = initramfs.check_fits(Bytes::mib(29)).unwrap_err().to_string();
        assert!(error.contains("take 10 MiB: expected at least 30 MiB, found 29 MiB"), "{error}");
    }
}
