//! What ARCHITECTURE.md says of the crates is what their manifests say.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The crates that a crate's manifest names, those of its tests apart.
fn dependencies(krate: &str, crates: &BTreeSet<String>) -> BTreeSet<String> {
    let manifest = fs::read_to_string(crates_dir().join(krate).join("Cargo.toml")).unwrap();
    let (_, below) = manifest.split_once("\n[dependencies]\n").unwrap_or_default();
    let own = below.split("\n[").next().unwrap_or_default();
    let names = own.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| crates.contains(*name)).map(str::to_string).collect()
}

fn crates_dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[test]
fn the_table_of_crates_has_their_dependencies() {
    let folders = fs::read_dir(crates_dir()).unwrap();
    let crates: BTreeSet<String> = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let text = fs::read_to_string(crates_dir().join("../ARCHITECTURE.md")).unwrap();
    let row = |line: &str| {
        let (name, rest) = line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ")?;
        Some((name.to_string(), rest.rsplit_once(" | ")?.1.to_string()))
    };
    let rows: Vec<(String, String)> = text.lines().filter_map(row).collect();
    assert_eq!(rows.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>(), crates);
    for (name, told) in rows {
        let words = |text: &str| text.split(", ").map(str::to_string).collect::<BTreeSet<String>>();
        let told = match told.strip_prefix("all but ") {
            Some(rest) => &crates - &(&words(&rest.replace(" and ", ", ")) | &words(&name)),
            None if told == "-" => BTreeSet::new(),
            None => words(&told),
        };
        assert_eq!(told, dependencies(&name, &crates), "{name}");
    }
}
