//! Memory cgroups, version 2, below the group that the run is in.
//!
//! Rule: a group that has children with controllers must not have processes itself, so that the run's processes go to a
//! group of their own before the first child is made; children of children have the memory controller too. The kernel
//! rounds limits down to pages.
//! Source: Documentation/admin-guide/cgroup-v2.rst, "No Internal Process Constraint"; `cgroup_subtree_control_write()`,
//! kernel/cgroup/cgroup.c (6.12).
//! Omitted: a process that is in a group which gets children: the kernel refuses it, and so does this with
//! [`SysError::Invalid`]; the twin does not.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use sys::{Cgroup, CgroupLimit, Result, SysError};
use units::Bytes;

use crate::SysLinux;
use crate::errno::sys_error;

/// Where the run's own processes are once there are groups; no workload can choose this name.
const OWN: &str = ".run";
/// The file that says which processes a group has, and takes another one.
const PROCS: &str = "cgroup.procs";
/// The file that says which controllers a group's children have.
const CONTROL: &str = "cgroup.subtree_control";

impl SysLinux {
    /// The group that the run is in.
    fn root_group(&self) -> Result<&Path> {
        self.process.config.cgroup.as_deref().ok_or(SysError::NotSupported)
    }

    pub(crate) fn make_cgroup(&self, path: &str) -> Result<Cgroup> {
        let root = self.root_group()?;
        let refused = |part: &str| part.is_empty() || part.starts_with('.');
        if path.split('/').any(refused) {
            return Err(SysError::Invalid);
        }
        make_below(root, path).map_err(group_error)?;
        self.process.shared.new_group(path).map(Cgroup).ok_or(SysError::Invalid)
    }

    fn group(&self, group: Cgroup) -> Result<PathBuf> {
        let root = self.root_group()?;
        Ok(root.join(self.process.shared.group(group.0).ok_or(SysError::Invalid)?))
    }

    pub(crate) fn set_cgroup_limit(&self, group: Cgroup, limit: CgroupLimit, value: Option<Bytes>) -> Result<()> {
        let text = value.map_or("max".to_string(), |value| value.0.to_string());
        write(&self.group(group)?.join(limit.file()), &text).map_err(group_error)
    }

    pub(crate) fn enter_cgroup(&self, group: Cgroup) -> Result<()> {
        // The process that writes 0 means itself.
        write(&self.group(group)?.join(PROCS), "0").map_err(group_error)
    }

    pub(crate) fn read_cgroup_file(&self, group: Cgroup, file: &str) -> Result<String> {
        if file.contains('/') || file.starts_with('.') {
            return Err(SysError::NoEntry);
        }
        fs::read_to_string(self.group(group)?.join(file)).map_err(group_error)
    }
}

/// Makes a group and those above it that are missing.
fn make_below(root: &Path, path: &str) -> io::Result<()> {
    let own = root.join(OWN);
    make_dir(&own)?;
    // Whoever ends meanwhile cannot be moved, and need not be.
    for pid in fs::read_to_string(root.join(PROCS))?.lines() {
        match write(&own.join(PROCS), pid) {
            Err(error) if Errno::from_io_error(&error) != Some(Errno::SRCH) => return Err(error),
            _ => {}
        }
    }
    let mut above = root.to_owned();
    for part in path.split('/') {
        write(&above.join(CONTROL), "+memory")?;
        above.push(part);
        make_dir(&above)?;
    }
    Ok(())
}

/// A group that is there already is no error.
fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

/// Writes to a file that the kernel made with the group.
fn write(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

fn group_error(error: io::Error) -> SysError {
    match Errno::from_io_error(&error) {
        // Processes where there may be none.
        Some(Errno::BUSY) => SysError::Invalid,
        Some(errno) => sys_error(errno),
        None => SysError::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with the files that the kernel makes with a group. (Below it they are not made.)
    fn group() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for dir in [root.path().to_owned(), root.path().join(OWN), root.path().join("a")] {
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(PROCS), "").unwrap();
            fs::write(dir.join(CONTROL), "").unwrap();
        }
        root
    }

    #[test]
    fn the_runs_processes_move_before_children_get_their_controller() {
        let root = group();
        fs::write(root.path().join(PROCS), "17\n").unwrap();
        make_below(root.path(), "a/b").unwrap();
        let text = |place: &str| fs::read_to_string(root.path().join(place)).unwrap();
        assert_eq!(text(".run/cgroup.procs"), "17");
        assert_eq!([text("cgroup.subtree_control"), text("a/cgroup.subtree_control")], ["+memory", "+memory"]);
        assert!(root.path().join("a/b").is_dir() && !root.path().join("b").exists());
        make_below(root.path(), "a/b").unwrap();
    }

    #[test]
    fn what_is_no_cgroup_is_refused() {
        let plain = tempfile::tempdir().unwrap();
        assert_eq!(group_error(make_below(plain.path(), "a").unwrap_err()), SysError::NoEntry);
        assert_eq!(group_error(io::Error::from(Errno::BUSY)), SysError::Invalid);
    }
}
