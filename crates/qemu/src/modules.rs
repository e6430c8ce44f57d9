//! Kernel modules: found, decompressed, with what they need, in the order in which they can be loaded.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::elf::module_dependencies;
use crate::error::{QemuError, io_error};

/// A module that the guest loads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Module {
    /// Its file's name without compression: `xfs.ko`.
    pub(crate) file: String,
    /// Its content, not compressed.
    pub(crate) content: Vec<u8>,
}

/// The modules `wanted` below `dir`, and those `useful` that are there, with all that they need, each after what it needs. What is built
/// into the kernel is left out.
///
/// # Errors
/// A module that is wanted is neither there nor built in; one is no module, or what it needs is not there.
pub(crate) fn load_order(dir: &Path, wanted: &[&str], useful: &[&str]) -> Result<Vec<Module>, QemuError> {
    let mut files = Vec::new();
    let mut builtin = String::new();
    list(dir, &mut files, &mut builtin)?;
    let mut tree = Tree { dir, files, builtin, loaded: Vec::new() };
    for name in wanted {
        tree.add(name, 0)?;
    }
    for name in useful {
        if tree.find(&canonical(name)).is_some() {
            tree.add(name, 0)?;
        }
    }
    Ok(tree.loaded)
}

struct Tree<'a> {
    dir: &'a Path,
    files: Vec<PathBuf>,
    builtin: String,
    loaded: Vec<Module>,
}

/// Deepest chain of dependencies; more is a circle.
const DEPTH_MAX: u32 = 32;

impl Tree<'_> {
    /// The file of a module.
    fn find(&self, canonical: &str) -> Option<PathBuf> {
        self.files.iter().find(|path| module_name(path).as_deref() == Some(canonical)).cloned()
    }

    fn add(&mut self, name: &str, depth: u32) -> Result<(), QemuError> {
        let wanted = canonical(name);
        let is_loaded = |module: &Module| module_name(Path::new(&module.file)).as_deref() == Some(&wanted);
        if self.loaded.iter().any(is_loaded) {
            return Ok(());
        }
        let Some(path) = self.find(&wanted) else {
            let builtin = |line: &str| module_name(Path::new(line)).as_deref() == Some(&wanted);
            if self.builtin.lines().any(builtin) {
                return Ok(());
            }
            let message =
                format!("{}: expected the module {name}, built in or as a file; found neither", self.dir.display());
            return Err(QemuError::Input(message));
        };
        let bad = |message: String| QemuError::Input(format!("{}: {message}", path.display()));
        if depth > DEPTH_MAX {
            return Err(bad("it needs itself".to_string()));
        }
        let content = decompressed(&path)?;
        for dependency in module_dependencies(&content).map_err(bad)? {
            self.add(&dependency, depth + 1)?;
        }
        self.loaded.push(Module { file: format!("{}.ko", plain_stem(&path)), content });
        Ok(())
    }
}

/// All module files below `dir`, and the text of `modules.builtin` where there is one.
fn list(dir: &Path, files: &mut Vec<PathBuf>, builtin: &mut String) -> Result<(), QemuError> {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(io_error("read", dir))?;
    entries.sort();
    for path in entries {
        let kind = fs::symlink_metadata(&path).map_err(io_error("read", &path))?;
        if kind.is_dir() {
            list(&path, files, builtin)?;
        } else if path.file_name().is_some_and(|name| name == "modules.builtin") {
            builtin.push_str(&fs::read_to_string(&path).map_err(io_error("read", &path))?);
        } else if module_name(&path).is_some() {
            files.push(path);
        }
    }
    Ok(())
}

/// A file's name up to `.ko`, with its hyphens.
fn plain_stem(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.split_once(".ko").map_or(name, |(stem, _)| stem)
}

/// Name of the module in a file; none if it is no module.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (stem, rest) = name.split_once(".ko")?;
    matches!(rest, "" | ".xz" | ".zst" | ".gz").then(|| canonical(stem))
}

/// The kernel takes hyphens and underscores for the same.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

fn decompressed(path: &Path) -> Result<Vec<u8>, QemuError> {
    let packed = fs::read(path).map_err(io_error("read", path))?;
    let bad = |error: String| QemuError::Input(format!("{}: cannot be decompressed: {error}", path.display()));
    let mut content = Vec::new();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => {
            lzma_rs::xz_decompress(&mut packed.as_slice(), &mut content).map_err(|error| bad(error.to_string()))?;
        }
        Some("zst") => {
            let mut decoder = ruzstd::decoding::StreamingDecoder::new(packed.as_slice());
            let decoder = decoder.as_mut().map_err(|error| bad(error.to_string()))?;
            decoder.read_to_end(&mut content).map_err(|error| bad(error.to_string()))?;
        }
        Some("gz") => {
            let mut decoder = flate2::read::GzDecoder::new(packed.as_slice());
            decoder.read_to_end(&mut content).map_err(|error| bad(error.to_string()))?;
        }
        _ => content = packed,
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whatever_their_packing_and_hyphens() {
        for name in ["dm-mod.ko", "dm-mod.ko.xz", "kernel/drivers/md/dm_mod.ko.zst", "dm-mod.ko.gz"] {
            assert_eq!(module_name(Path::new(name)).as_deref(), Some("dm_mod"), "{name}");
        }
        for name in ["modules.dep", "dm-mod.konfig", "dm-mod.ko.txt"] {
            assert_eq!(module_name(Path::new(name)), None, "{name}");
        }
    }

    #[test]
    fn what_is_built_in_is_left_out_and_what_is_missing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("modules.builtin"), "kernel/fs/ext4/ext4.ko\n").unwrap();
        assert_eq!(load_order(dir.path(), &["ext4"], &["lz4"]).unwrap(), [], "nor is lz4 there, which is only useful");
        let error = load_order(dir.path(), &["ext4", "nd_pmem"], &[]).unwrap_err();
        assert!(error.is_bad_input());
        assert!(error.to_string().ends_with("expected the module nd_pmem, built in or as a file; found neither"));
    }
}
