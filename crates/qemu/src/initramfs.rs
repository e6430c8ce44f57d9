//! The initramfs: agent, modules, job.

use std::path::Path;

use guest::{JOB_FILE, Job, MODULES_DIR};
use sha2::{Digest, Sha256};

use crate::agent;
use crate::cpio::Cpio;
use crate::error::QemuError;
use crate::modules::Module;

/// An initramfs, and what identifies the agent in it.
pub(crate) struct Initramfs {
    pub(crate) bytes: Vec<u8>,
    /// SHA-256 of the agent with its libraries, in hexadecimal.
    pub(crate) agent_hash: String,
}

pub(crate) fn build(agent: &Path, modules: &[Module], job: &Job) -> Result<Initramfs, QemuError> {
    let mut cpio = Cpio::default();
    let mut hash = Sha256::new();
    for (path, content) in agent::files(agent)? {
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
