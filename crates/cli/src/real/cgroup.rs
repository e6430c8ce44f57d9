//! A memory cgroup for a workload on this machine.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst (6.12). A group of version 2 may have processes or
//! children with controllers, not both, so that the new group stands beside this program's own; one of version 1 stands
//! below it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use units::Bytes;

/// Which files a group has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    V1,
    V2,
}

impl Version {
    fn limit_file(self) -> &'static str {
        match self {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        }
    }

    fn usage_file(self) -> &'static str {
        match self {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        }
    }
}

/// Where this program's memory cgroup is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    version: Version,
    /// Where the hierarchy is mounted.
    root: PathBuf,
    /// The own group.
    own: PathBuf,
}

impl Place {
    /// This program's; none if no memory cgroups are mounted.
    pub(crate) fn find() -> Option<Place> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        Place::parse(&own, &mounts)
    }

    fn parse(own: &str, mounts: &str) -> Option<Place> {
        let mount = |kind: &str, option: &str| {
            mounts.lines().find_map(|line| {
                let mut fields = line.split(' ').skip(1);
                let (place, fs, options) = (fields.next()?, fields.next()?, fields.next()?);
                let fits = fs == kind && (option.is_empty() || options.split(',').any(|known| known == option));
                fits.then(|| PathBuf::from(place))
            })
        };
        let path = |controller: &str| {
            own.lines().find_map(|line| {
                let mut fields = line.splitn(3, ':').skip(1);
                let controllers = fields.next()?;
                let fits = controllers.split(',').any(|known| known == controller);
                fits.then(|| fields.next()).flatten().map(|path| path.trim_start_matches('/').to_string())
            })
        };
        // A machine with both has the memory controller in version 1.
        let (version, root, below) = match (mount("cgroup", "memory"), path("memory")) {
            (Some(root), Some(below)) => (Version::V1, root, below),
            _ => (Version::V2, mount("cgroup2", "")?, path("")?),
        };
        Some(Place { version, own: root.join(below), root })
    }

    /// The smallest limit on the own group and those above it.
    pub(super) fn limit(&self) -> Option<Bytes> {
        self.groups().filter_map(|group| self.limit_of(group)).min()
    }

    /// What the own group and those above it let it take beside what they have; none if they have no limit.
    pub(crate) fn left(&self) -> Option<Bytes> {
        let left = |group: &Path| {
            let usage = number(&group.join(self.version.usage_file())).unwrap_or(0);
            Some(Bytes(self.limit_of(group)?.0.saturating_sub(usage)))
        };
        self.groups().filter_map(left).min()
    }

    /// The own group and those above it.
    fn groups(&self) -> impl Iterator<Item = &Path> {
        self.own.ancestors().take_while(|group| group.starts_with(&self.root))
    }

    fn limit_of(&self, group: &Path) -> Option<Bytes> {
        // Version 1 says "no limit" by a number near the largest one.
        number(&group.join(self.version.limit_file())).filter(|bytes| *bytes < 1 << 60).map(Bytes)
    }

    /// Makes a group with this limit.
    pub(super) fn make(&self, limit: Bytes) -> io::Result<Group> {
        let above = match self.version {
            Version::V1 => &self.own,
            Version::V2 => self.own.parent().filter(|above| above.starts_with(&self.root)).unwrap_or(&self.own),
        };
        let path = above.join(format!("mmtwin-{}", std::process::id()));
        fs::create_dir(&path)?;
        let group = Group { path, version: self.version };
        write(&group.path.join(self.version.limit_file()), &limit.0.to_string())?;
        Ok(group)
    }
}

/// A group; it is removed with this, once its processes have ended.
pub(super) struct Group {
    path: PathBuf,
    version: Version,
}

impl Group {
    /// Puts a process into the group.
    pub(super) fn enter(&self, pid: i32) -> io::Result<()> {
        write(&self.path.join("cgroup.procs"), &pid.to_string())
    }

    /// Its directory, if the workload can make groups below it as version 2 has them.
    pub(super) fn own_children(&self) -> Option<PathBuf> {
        (self.version == Version::V2).then(|| self.path.clone())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group that cannot be removed yet is empty soon, and harmless.
        let _ = remove(&self.path);
    }
}

/// Removes a group with those below it: directories only, since the kernel's files go with them.
fn remove(group: &Path) -> io::Result<()> {
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

/// The number that a file holds; none if it has another word.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Writes to a file that the kernel made with the group.
fn write(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found() {
        let v2 = Place::parse("0::/user.slice/x.scope\n", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n").unwrap();
        assert_eq!((v2.version, v2.own.to_str().unwrap()), (Version::V2, "/sys/fs/cgroup/user.slice/x.scope"));
        let mounts =
            "cgroup /c/cpu cgroup rw,cpu 0 0\ncgroup /c/memory cgroup rw,memory 0 0\ncgroup2 /c/u cgroup2 rw 0 0\n";
        let v1 = Place::parse("4:memory:/a\n2:cpu,cpuacct:/b\n0::/\n", mounts).unwrap();
        assert_eq!((v1.version, v1.own.to_str().unwrap()), (Version::V1, "/c/memory/a"));
        assert_eq!(Place::parse("0::/\n", "proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn the_smallest_limit_above_counts() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("a/b");
        fs::create_dir_all(&own).unwrap();
        let place = Place { version: Version::V2, root: root.path().to_owned(), own: own.clone() };
        assert_eq!(place.limit(), None);
        fs::write(own.join("memory.max"), "max\n").unwrap();
        fs::write(root.path().join("a/memory.max"), "1048576\n").unwrap();
        assert_eq!(place.limit(), Some(Bytes::mib(1)));
        fs::write(own.join("memory.max"), "4096\n").unwrap();
        assert_eq!(place.limit(), Some(Bytes(4096)));
    }

    #[test]
    fn what_is_left_is_what_the_fullest_group_has() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("scope");
        fs::create_dir_all(&own).unwrap();
        let place = Place { version: Version::V2, root: root.path().to_owned(), own: own.clone() };
        let write = |file: &str, text: &str| fs::write(own.join(file), text).unwrap();
        write("memory.current", "300\n");
        assert_eq!(place.left(), None);
        write("memory.max", "1000\n");
        assert_eq!(place.left(), Some(Bytes(700)));
        // The group above has a larger limit, and others in it.
        fs::write(root.path().join("memory.max"), "5000\n").unwrap();
        fs::write(root.path().join("memory.current"), "4900\n").unwrap();
        assert_eq!(place.left(), Some(Bytes(100)));
        write("memory.current", "1001\n");
        assert_eq!(place.left(), Some(Bytes(0)), "a limit that was lowered");
    }

    #[test]
    fn a_group_that_cannot_be_limited_is_not_left_behind() {
        // A plain directory has none of the kernel's files.
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("own");
        fs::create_dir(&own).unwrap();
        let place = Place { version: Version::V1, root: root.path().to_owned(), own: own.clone() };
        assert!(place.make(Bytes::mib(1)).is_err());
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    }
}
