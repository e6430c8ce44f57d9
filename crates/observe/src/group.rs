//! The files of a memory cgroup (version 2).
//!
//! Source: `memory_files[]` (mm/memcontrol.c), `cgroup_psi_files[]` (kernel/cgroup/cgroup.c), 6.12.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::{Counters, ParseError, Pressure};

/// Files of counters.
pub const GROUP_COUNTERS: [&str; 3] = ["memory.stat", "memory.events", "memory.swap.events"];
/// Files of stalls.
pub const GROUP_PRESSURE: [&str; 3] = ["cpu.pressure", "io.pressure", "memory.pressure"];
/// Files of one number, in bytes.
pub const GROUP_NUMBERS: [&str; 3] = ["memory.current", "memory.peak", "memory.swap.current"];

/// What a group shows at one moment, by the names of the files; a file that a kernel does not have is not there.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GroupFiles {
    /// Those of counters.
    pub counters: IndexMap<&'static str, Counters>,
    /// Those of stalls.
    pub pressure: IndexMap<&'static str, Pressure>,
    /// Those of one number, in bytes.
    pub numbers: IndexMap<&'static str, u64>,
}

impl GroupFiles {
    /// Takes the text of a file in; what is none of the files above is left alone. `place` only names it in errors.
    ///
    /// # Errors
    /// The text is not what the kernel prints.
    pub fn take(&mut self, place: &str, name: &str, text: &str) -> Result<(), ParseError> {
        let known = |names: [&'static str; 3]| names.into_iter().find(|known| *known == name);
        if let Some(name) = known(GROUP_COUNTERS) {
            self.counters.insert(name, Counters::parse(place, text)?);
        }
        if let Some(name) = known(GROUP_PRESSURE) {
            self.pressure.insert(name, Pressure::parse(place, text)?);
        }
        if let Some(name) = known(GROUP_NUMBERS) {
            let number = Counters::parse(place, &format!("{name} {text}"))?;
            self.numbers.extend(number.get(name).map(|bytes| (name, bytes)));
        }
        Ok(())
    }

    /// The files as name and text.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let counters = self.counters.iter().map(|(name, counters)| (*name, counters.write()));
        let pressure = self.pressure.iter().map(|(name, pressure)| (*name, pressure.write()));
        let numbers = self.numbers.iter().map(|(name, bytes)| (*name, format!("{bytes}\n")));
        counters.chain(pressure).chain(numbers).collect()
    }

    /// Groups of a snapshot from texts by `PATH/FILE`, the groups in the order of their paths.
    ///
    /// # Errors
    /// A text is not what the kernel prints; `place` names it.
    pub fn parse_all<'a>(
        place: &str,
        files: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<IndexMap<String, GroupFiles>, ParseError> {
        let mut groups: BTreeMap<String, GroupFiles> = BTreeMap::new();
        for (path, text) in files {
            let Some((group, name)) = path.rsplit_once('/') else { continue };
            groups.entry(group.to_string()).or_default().take(&format!("{place}/{path}"), name, text)?;
        }
        Ok(groups.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let pressure =
            "some avg10=1.50 avg60=0.00 avg300=0.00 total=17\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        let texts = [
            ("app/memory.stat", "anon 4096\nfile 8192\n"),
            ("app/db/memory.events", "low 0\nhigh 3\n"),
            ("app/db/memory.pressure", pressure),
            ("app/memory.current", "12288\n"),
            ("app/cgroup.procs", "not ours"),
        ];
        let groups = GroupFiles::parse_all("after/cgroup", texts.into_iter()).unwrap();
        assert_eq!(groups.keys().collect::<Vec<_>>(), ["app", "app/db"]);
        assert_eq!(groups["app"].numbers["memory.current"], 12288);
        let files = |group: &str| {
            groups[group].files().into_iter().map(|(name, text)| format!("{name}: {text}")).collect::<String>()
        };
        assert_eq!(files("app"), "memory.stat: anon 4096\nfile 8192\nmemory.current: 12288\n");
        assert_eq!(files("app/db"), format!("memory.events: low 0\nhigh 3\nmemory.pressure: {pressure}"));
        let wrong = GroupFiles::parse_all("after/cgroup", [("app/memory.current", "much")].into_iter());
        assert!(wrong.unwrap_err().to_string().contains("after/cgroup/app/memory.current"));
    }
}
