//! The kernel's image and its modules: a file, or a package of Debian that is fetched once and kept.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{QemuError, io_error};

/// A kernel to boot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelImage {
    /// How a run's manifest calls it: the package with its version, or the path.
    pub name: String,
    /// The image (`vmlinuz`).
    pub image: PathBuf,
    /// Where its modules are; without them it must have everything built in.
    pub modules: Option<PathBuf>,
}

/// What an apt-get is told, so that the user can do the same.
const FLAVOUR: &str = "cloud-amd64";

impl KernelImage {
    /// The kernel `spec`: `debian:VERSION` (`debian:6.12`, `debian:6.1`) is looked for in the cache and fetched with
    /// `apt-get download` if it is not there; anything else is the path of an image, whose modules are below `modules`.
    ///
    /// # Errors
    /// There is no such file; the package cannot be found, fetched or unpacked.
    pub fn find(spec: &str, modules: Option<&Path>) -> Result<KernelImage, QemuError> {
        match spec.strip_prefix("debian:") {
            Some(_) if modules.is_some() => {
                Err(QemuError::Input(format!("--modules: {spec} brings its own; it goes with the path of an image")))
            }
            Some(version) => debian(version),
            None => file(spec, modules),
        }
    }
}

fn file(path: &str, modules: Option<&Path>) -> Result<KernelImage, QemuError> {
    let image = PathBuf::from(path);
    if !image.is_file() {
        let expected = "expected debian:6.12, debian:6.1 or the path of a kernel image (vmlinuz)";
        return Err(QemuError::Input(format!("--kernel-image {path}: {expected}; there is no such file")));
    }
    if let Some(dir) = modules.filter(|dir| !dir.is_dir()) {
        let expected = "expected a directory such as /lib/modules/6.12.0";
        return Err(QemuError::Input(format!("--modules {}: {expected}; there is none", dir.display())));
    }
    Ok(KernelImage { name: path.to_string(), image, modules: modules.map(Path::to_owned) })
}

fn debian(version: &str) -> Result<KernelImage, QemuError> {
    let plain = !version.is_empty() && version.chars().all(|c| c.is_ascii_digit() || c == '.');
    if !plain {
        return Err(QemuError::Input(format!(
            "--kernel-image debian:{version}: expected a version such as debian:6.12"
        )));
    }
    let cache = cache_dir()?;
    if let Some(kernel) = newest_cached(&cache, version)? {
        return Ok(kernel);
    }
    let package = newest_package(version)?;
    fetch(&cache, &package)?;
    newest_cached(&cache, version)?.ok_or_else(|| QemuError::Program {
        program: format!("apt-get download {package}"),
        message: "the package holds no boot/vmlinuz".to_string(),
    })
}

/// `mmtwin/kernels` in the user's cache directory.
fn cache_dir() -> Result<PathBuf, QemuError> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache = cache.ok_or_else(|| QemuError::Input("neither XDG_CACHE_HOME nor HOME is set".to_string()))?;
    Ok(cache.join("mmtwin/kernels"))
}

/// The newest kept package of this version.
fn newest_cached(cache: &Path, version: &str) -> Result<Option<KernelImage>, QemuError> {
    let Ok(entries) = fs::read_dir(cache) else { return Ok(None) };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_of_version(name, version)).collect();
    names.sort_by_key(|name| figures(name));
    let Some(name) = names.pop() else { return Ok(None) };
    let dir = cache.join(&name);
    let image = only_entry(&dir.join("boot"), "vmlinuz-")?;
    let modules = ["usr/lib/modules", "lib/modules"].iter().map(|place| dir.join(place)).find(|path| path.is_dir());
    Ok(image.map(|image| KernelImage { name: format!("debian:{name}"), image, modules }))
}

fn only_entry(dir: &Path, prefix: &str) -> Result<Option<PathBuf>, QemuError> {
    let entries = fs::read_dir(dir).map_err(io_error("read", dir))?;
    let starts = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).find(starts))
}

/// Whether a package's name is `linux-image-VERSION.REST-cloud-amd64` or `linux-image-VERSION-cloud-amd64`, signed.
fn is_of_version(package: &str, version: &str) -> bool {
    let rest = package.strip_prefix("linux-image-").and_then(|rest| rest.strip_suffix(FLAVOUR));
    let rest = rest.and_then(|rest| rest.strip_prefix(version)).and_then(|rest| rest.strip_suffix('-'));
    rest.is_some_and(|rest| rest.starts_with('.'))
}

/// The numbers in a name, by which versions are ordered.
fn figures(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// The newest package of this version that apt knows.
fn newest_package(version: &str) -> Result<String, QemuError> {
    let pattern = format!("^linux-image-{}\\.[0-9].*-{FLAVOUR}$", version.replace('.', "\\."));
    let listed = output(Command::new("apt-cache").args(["search", "--names-only", &pattern]));
    let remedy = || {
        let line = format!("apt-get update; apt-get download linux-image-{version}.N-{FLAVOUR}");
        format!(
            "on Debian: `{line}` must find it; elsewhere give --kernel-image the path of a vmlinuz and --modules DIR"
        )
    };
    let missing = |_| QemuError::Missing { what: format!("a Debian kernel {version}"), remedy: remedy() };
    let text = listed.map_err(missing)?;
    let names = text.lines().filter_map(|line| line.split(" - ").next()).map(str::trim);
    let mut names: Vec<&str> = names.filter(|name| is_of_version(name, version)).collect();
    names.sort_by_key(|name| figures(name));
    names.pop().map(str::to_string).ok_or(()).map_err(|()| missing(String::new()))
}

/// Fetches a package and unpacks it into the cache, complete or not at all.
fn fetch(cache: &Path, package: &str) -> Result<(), QemuError> {
    fs::create_dir_all(cache).map_err(io_error("make the directory", cache))?;
    let unfinished = tempfile::Builder::new().prefix(".fetching-").tempdir_in(cache);
    let unfinished = unfinished.map_err(io_error("make a temporary directory in", cache))?;
    let dir = unfinished.path();
    let failed = |program: String| move |message: String| QemuError::Program { program, message };
    let download = format!("apt-get download {package}");
    output(Command::new("apt-get").args(["-q", "download", package]).current_dir(dir)).map_err(failed(download))?;
    let deb = only_entry(dir, "linux-image-")?.ok_or_else(|| QemuError::Program {
        program: format!("apt-get download {package}"),
        message: "it left no file".to_string(),
    })?;
    let tree = dir.join("tree");
    output(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&tree))
        .map_err(failed(format!("dpkg-deb -x {package}")))?;
    let place = cache.join(package);
    match fs::rename(&tree, &place) {
        // Another mmtwin may have been faster; what it left is the same.
        Err(_) if place.is_dir() => Ok(()),
        renamed => renamed.map_err(io_error("rename a package to", &place)),
    }
}

/// Standard output of a program; its complaint if it failed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.env("LC_ALL", "C").output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(if complaint.is_empty() { output.status.to_string() } else { complaint })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signed_kernels_of_the_version_fit() {
        for name in ["linux-image-6.12.117+deb12-cloud-amd64", "linux-image-6.12.9-cloud-amd64"] {
            assert!(is_of_version(name, "6.12"), "{name}");
            assert!(!is_of_version(name, "6.1"), "{name}");
        }
        assert!(is_of_version("linux-image-6.1.0-56-cloud-amd64", "6.1"));
        for name in
            ["linux-image-6.12.117+deb12-cloud-amd64-dbg", "linux-image-6.12-cloud-amd64", "linux-image-6.12.1-amd64"]
        {
            assert!(!is_of_version(name, "6.12"), "{name}");
        }
    }

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let mut names = ["linux-image-6.1.0-9-cloud-amd64", "linux-image-6.1.0-56-cloud-amd64"];
        names.sort_by_key(|name| figures(name));
        assert_eq!(names[1], "linux-image-6.1.0-56-cloud-amd64");
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_what_was_expected() {
        for (spec, expected) in [("/nowhere/vmlinuz", "there is no such file"), ("debian:sid", "a version such as")] {
            let error = KernelImage::find(spec, None).unwrap_err();
            assert!(error.is_bad_input() && error.to_string().contains(expected), "{error}");
        }
        let error = KernelImage::find("debian:6.12", Some(Path::new("/lib/modules"))).unwrap_err();
        assert!(error.to_string().contains("brings its own"), "{error}");
    }
}
