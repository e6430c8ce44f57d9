//! What a kernel shows at one moment: the files of `before/` and `after/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use indexmap::IndexMap;

use crate::{
    Buddyinfo, Counters, GroupFiles, LruGenInfo, Meminfo, Pagetypeinfo, ParseError, Pressure, RunError, Slabinfo,
    Uptime, Zoneinfo,
};

/// Where a snapshot has the files of cgroups.
const GROUPS: &str = "cgroup";

/// The kernel's text files at one moment; `None` where a file was not readable or the world has none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    /// `/proc/vmstat`.
    pub vmstat: Option<Counters>,
    /// `/proc/zoneinfo`.
    pub zoneinfo: Option<Zoneinfo>,
    /// `/proc/buddyinfo`.
    pub buddyinfo: Option<Buddyinfo>,
    /// `/proc/pagetypeinfo`.
    pub pagetypeinfo: Option<Pagetypeinfo>,
    /// `/proc/meminfo`.
    pub meminfo: Option<Meminfo>,
    /// `/proc/slabinfo`.
    pub slabinfo: Option<Slabinfo>,
    /// `/proc/pressure/cpu`, in the file `pressure_cpu`.
    pub pressure_cpu: Option<Pressure>,
    /// `/proc/pressure/io`, in the file `pressure_io`.
    pub pressure_io: Option<Pressure>,
    /// `/proc/pressure/memory`, in the file `pressure_memory`.
    pub pressure_memory: Option<Pressure>,
    /// `/proc/uptime`.
    pub uptime: Option<Uptime>,
    /// `/sys/kernel/debug/lru_gen`.
    pub lru_gen: Option<LruGenInfo>,
    /// The memory cgroups that the workload made, by their paths below its own, in `cgroup/PATH/`.
    pub groups: IndexMap<String, GroupFiles>,
}

impl Snapshot {
    /// Reads the files that `dir` has; others in it are left alone.
    pub fn read(dir: &Path) -> Result<Snapshot, RunError> {
        Ok(Snapshot {
            vmstat: read_file(dir, "vmstat", Counters::parse)?,
            zoneinfo: read_file(dir, "zoneinfo", Zoneinfo::parse)?,
            buddyinfo: read_file(dir, "buddyinfo", Buddyinfo::parse)?,
            pagetypeinfo: read_file(dir, "pagetypeinfo", Pagetypeinfo::parse)?,
            meminfo: read_file(dir, "meminfo", Meminfo::parse)?,
            slabinfo: read_file(dir, "slabinfo", Slabinfo::parse)?,
            pressure_cpu: read_file(dir, "pressure_cpu", Pressure::parse)?,
            pressure_io: read_file(dir, "pressure_io", Pressure::parse)?,
            pressure_memory: read_file(dir, "pressure_memory", Pressure::parse)?,
            uptime: read_file(dir, "uptime", Uptime::parse)?,
            lru_gen: read_file(dir, "lru_gen", LruGenInfo::parse)?,
            groups: read_groups(&dir.join(GROUPS))?,
        })
    }

    /// Reads the files below `place` of those that there are.
    pub fn parse(place: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<Snapshot, ParseError> {
        let get = |name: &str| files.get(&format!("{place}/{name}")).map(Vec::as_slice);
        Ok(Snapshot {
            vmstat: parse_file(place, "vmstat", get, Counters::parse)?,
            zoneinfo: parse_file(place, "zoneinfo", get, Zoneinfo::parse)?,
            buddyinfo: parse_file(place, "buddyinfo", get, Buddyinfo::parse)?,
            pagetypeinfo: parse_file(place, "pagetypeinfo", get, Pagetypeinfo::parse)?,
            meminfo: parse_file(place, "meminfo", get, Meminfo::parse)?,
            slabinfo: parse_file(place, "slabinfo", get, Slabinfo::parse)?,
            pressure_cpu: parse_file(place, "pressure_cpu", get, Pressure::parse)?,
            pressure_io: parse_file(place, "pressure_io", get, Pressure::parse)?,
            pressure_memory: parse_file(place, "pressure_memory", get, Pressure::parse)?,
            uptime: parse_file(place, "uptime", get, Uptime::parse)?,
            lru_gen: parse_file(place, "lru_gen", get, LruGenInfo::parse)?,
            groups: parse_groups(&format!("{place}/{GROUPS}"), files)?,
        })
    }

    /// The files as name and text.
    pub fn files(&self) -> Vec<(String, String)> {
        let files = [
            ("vmstat", self.vmstat.as_ref().map(Counters::write)),
            ("zoneinfo", self.zoneinfo.as_ref().map(Zoneinfo::write)),
            ("buddyinfo", self.buddyinfo.as_ref().map(Buddyinfo::write)),
            ("pagetypeinfo", self.pagetypeinfo.as_ref().map(Pagetypeinfo::write)),
            ("meminfo", self.meminfo.as_ref().map(Meminfo::write)),
            ("slabinfo", self.slabinfo.as_ref().map(Slabinfo::write)),
            ("pressure_cpu", self.pressure_cpu.as_ref().map(Pressure::write)),
            ("pressure_io", self.pressure_io.as_ref().map(Pressure::write)),
            ("pressure_memory", self.pressure_memory.as_ref().map(Pressure::write)),
            ("uptime", self.uptime.as_ref().map(Uptime::write)),
            ("lru_gen", self.lru_gen.as_ref().map(LruGenInfo::write)),
        ];
        let of_groups = self.groups.iter().flat_map(|(path, group)| {
            group.files().into_iter().map(move |(name, text)| (format!("{GROUPS}/{path}/{name}"), text))
        });
        files.into_iter().filter_map(|(name, text)| Some((name.to_string(), text?))).chain(of_groups).collect()
    }
}

/// The files of cgroups below `place`.
fn parse_groups(place: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<IndexMap<String, GroupFiles>, ParseError> {
    let below = files.iter().filter_map(|(name, bytes)| {
        let path = name.strip_prefix(place)?.strip_prefix('/')?;
        Some((path, std::str::from_utf8(bytes).ok()?))
    });
    GroupFiles::parse_all(place, below)
}

/// The files of cgroups in a directory, which there need not be.
fn read_groups(dir: &Path) -> Result<IndexMap<String, GroupFiles>, RunError> {
    let place = dir.to_string_lossy();
    let mut files = BTreeMap::new();
    if dir.is_dir() {
        read_below(dir, &place, &mut files)?;
    }
    Ok(parse_groups(&place, &files)?)
}

fn read_below(dir: &Path, place: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<(), RunError> {
    let failed = |source| RunError::Io { path: dir.to_owned(), action: "read", source };
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let place = format!("{place}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            read_below(&path, &place, files)?;
        } else {
            files.insert(place, fs::read(&path).map_err(failed)?);
        }
    }
    Ok(())
}

/// Parses a file that `get` has; `None` if it has none.
fn parse_file<'a, T>(
    place: &str,
    name: &str,
    get: impl Fn(&str) -> Option<&'a [u8]>,
    parse: impl Fn(&str, &str) -> Result<T, ParseError>,
) -> Result<Option<T>, ParseError> {
    get(name).map(|bytes| parse(&format!("{place}/{name}"), &String::from_utf8_lossy(bytes))).transpose()
}

/// Reads and parses a file; `None` if there is none.
fn read_file<T>(
    dir: &Path,
    name: &str,
    parse: impl Fn(&str, &str) -> Result<T, ParseError>,
) -> Result<Option<T>, RunError> {
    let path = dir.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(parse(&path.to_string_lossy(), &text)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RunError::Io { path, action: "read", source }),
    }
}
