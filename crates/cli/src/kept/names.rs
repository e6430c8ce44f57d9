//! How runs that were kept are told apart in a table.

use indexmap::IndexMap;
use observe::{Described, Manifest};

use super::Kept;

/// What a column is told apart by: place in the inputs, and value.
type Traits = IndexMap<String, String>;

/// What tells columns apart that have all of that in common: the folders that were typed, mmtwin's versions, and what the
/// machines and the kernels of one name are.
const DISTINCTIONS: [fn(&Kept) -> String; 4] = [
    |kept| kept.folder.as_deref().map_or_else(String::new, |folder| folder.display().to_string()),
    |kept| kept.run.manifest.version.clone(),
    |kept| checksum("machine", &kept.run.manifest.machine),
    |kept| checksum("kernel", &kept.run.manifest.kernel),
];

/// A run's workload, machine and parameters.
pub(super) fn title_of(manifest: &Manifest) -> String {
    let place = format!("{} on {}", manifest.workload.name, manifest.machine.name);
    let params: Vec<String> = params(manifest).map(|(_, param)| param).collect();
    if params.is_empty() { place } else { format!("{place}: {}", params.join(" ")) }
}

/// Names of columns by a run of each: the kernel, and what they differ in. Where that leaves two with one name, what of the
/// [`DISTINCTIONS`] tells them apart is added, one after another until they are.
pub(super) fn names(runs: &[&Kept]) -> Vec<String> {
    let traits: Vec<Traits> = runs.iter().map(|kept| traits_of(&kept.run.manifest)).collect();
    let name = |own: &Traits| {
        let differs = |key: &&String| traits.iter().any(|other| other.get(*key) != own.get(*key));
        let names: Vec<&str> =
            own.keys().filter(|key| *key == "kernel" || differs(key)).map(|key| own[key].as_str()).collect();
        names.join(" ")
    };
    let mut names: Vec<String> = traits.iter().map(name).collect();
    for distinction in DISTINCTIONS {
        let told: Vec<String> = runs.iter().map(|kept| distinction(kept)).collect();
        let alike = names.clone();
        for (at, name) in names.iter_mut().enumerate() {
            let is_told_apart = |other: usize| alike[other] == alike[at] && told[other] != told[at];
            if (0..runs.len()).any(is_told_apart) {
                *name = format!("{name} {}", told[at]).trim_end().to_string();
            }
        }
    }
    names
}

fn traits_of(manifest: &Manifest) -> Traits {
    let mut traits = Traits::new();
    traits.insert("kernel".into(), manifest.kernel.name.clone());
    traits.insert("machine".into(), manifest.machine.name.clone());
    traits.insert("world".into(), manifest.world.to_string());
    traits.insert("workload".into(), manifest.workload.name.clone());
    traits.extend(params(manifest));
    traits.extend(manifest.sysctls.iter().map(|(name, value)| (name.clone(), format!("{name}={value}"))));
    traits
}

/// Parameters by name, each with its value.
fn params(manifest: &Manifest) -> impl Iterator<Item = (String, String)> {
    manifest.workload.typed().map(|(name, value)| (name.to_string(), format!("{name}={}", in_a_name(&value))))
}

/// A value as part of a name: a text of several lines, such as a job file, is told by its checksum (CRC-32).
pub(crate) fn in_a_name(value: &str) -> String {
    if value.contains('\n') { format!("{:08x}", crc32fast::hash(value.as_bytes())) } else { value.to_string() }
}

fn checksum(what: &str, described: &Described) -> String {
    format!("{what} {:08x}", crc32fast::hash(described.toml.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::kept;
    use super::*;

    fn told(runs: &[Kept]) -> Vec<String> {
        names(&runs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn columns_are_named_by_what_they_differ_in() {
        let runs = [kept("m", "k", &[], &[1.0]), kept("m", "k", &[("vm.swappiness", "0")], &[1.0])];
        assert_eq!(told(&runs), ["k", "k vm.swappiness=0"]);
    }

    #[test]
    fn columns_of_one_name_are_told_apart_by_the_first_that_does() {
        let mut runs = [(); 4].map(|()| kept("m", "k", &[], &[1.0]));
        runs[1].folder = Some("after".into());
        runs[2].folder = Some("after".into());
        runs[2].run.manifest.version = "2".into();
        runs[3].folder = Some("after".into());
        // Of `printf 123456789` and of nothing, as gzip and zlib give it.
        runs[3].run.manifest.machine.toml = "123456789".into();
        assert_eq!(told(&runs[..2]), ["k", "k after"]);
        assert_eq!(told(&runs[1..]), ["k 1 machine 00000000", "k 2", "k 1 machine cbf43926"]);
        runs[3].run.manifest.kernel.name = "other".into();
        assert_eq!(told(&runs), ["k", "k after 1", "k after 2", "other"], "what has a name of its own keeps it");
    }

    #[test]
    fn a_text_is_told_by_its_checksum() {
        assert_eq!(in_a_name("64KiB"), "64KiB");
        // Of `printf '123456789\n'`, as gzip and zlib give it.
        assert_eq!(in_a_name("123456789\n"), "e0117757");
    }
}
