//! The agent's program: found beside this one, and made fit for an initramfs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use guest::FIO;

use crate::elf;
use crate::error::{QemuError, io_error};

/// Name of the agent's program.
const AGENT: &str = "mmtwin-guest";

/// The agent that was built with this program: it stands beside it.
///
/// # Errors
/// It is not there.
pub fn find_agent() -> Result<PathBuf, QemuError> {
    let own = env::current_exe().map_err(io_error("find", Path::new("/proc/self/exe")))?;
    let agent = own.with_file_name(AGENT);
    if agent.is_file() {
        return Ok(agent);
    }
    Err(QemuError::Missing {
        what: format!("{} (the guest's agent)", agent.display()),
        remedy: "`cargo build --release` builds it beside mmtwin; keep them together".to_string(),
    })
}

/// Files of an initramfs, with their places.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// The agent as `/init`, fio if it is needed, and the libraries that they need where they are not static, at the places where
/// the loader looks.
pub(crate) fn files(agent: &Path, with_fio: bool) -> Result<Files, QemuError> {
    let mut files = program(agent, "/init")?;
    if with_fio {
        let fio = Path::new(FIO);
        if !fio.is_file() {
            let remedy = "on Debian: `apt-get install fio`".to_string();
            return Err(QemuError::Missing { what: format!("{FIO}, which runs job files in a guest,"), remedy });
        }
        // What the agent brings already is there once.
        let known: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
        files.extend(program(fio, FIO)?.into_iter().filter(|(path, _)| !known.contains(path)));
    }
    Ok(files)
}

/// A program, to stand at `place`, and its libraries.
fn program(path: &Path, place: &str) -> Result<Files, QemuError> {
    let program = fs::read(path).map_err(io_error("read", path))?;
    let bad = |message: String| QemuError::Input(format!("{}: {message}", path.display()));
    let mut files = vec![(place.to_string(), elf::stripped(&program).map_err(bad)?)];
    if elf::is_dynamic(&program).map_err(bad)? {
        for library in libraries(path)? {
            let content = fs::read(&library).map_err(io_error("read", &library))?;
            files.push((library.to_string_lossy().into_owned(), content));
        }
    }
    Ok(files)
}

/// The loader and the libraries of a dynamic program, as the loader itself lists them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, QemuError> {
    let output = Command::new(program).env("LD_TRACE_LOADED_OBJECTS", "1").output();
    let output = output.map_err(io_error("list the libraries of", program))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let libraries: Vec<PathBuf> = text.lines().filter_map(library_of).map(PathBuf::from).collect();
    if libraries.is_empty() {
        return Err(QemuError::Input(format!("{}: its libraries cannot be listed", program.display())));
    }
    Ok(libraries)
}

/// The path in `name => /path (0x...)` or `/path (0x...)`; what the kernel provides has none.
fn library_of(line: &str) -> Option<&str> {
    let path = line.split("=>").last()?.trim();
    let path = path.split(" (").next()?.trim();
    path.starts_with('/').then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        assert_eq!(
            library_of("\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f)"),
            Some("/lib/x86_64-linux-gnu/libc.so.6")
        );
        assert_eq!(library_of("\t/lib64/ld-linux-x86-64.so.2 (0x7f)"), Some("/lib64/ld-linux-x86-64.so.2"));
        assert_eq!(library_of("\tlinux-vdso.so.1 (0x7ffd)"), None);
    }

    #[test]
    fn this_program_runs_with_the_libraries_that_are_listed() {
        let files = files(&env::current_exe().unwrap(), false).unwrap();
        assert_eq!(files[0].0, "/init");
        let dynamic = elf::is_dynamic(&files[0].1).unwrap();
        assert_eq!(files.iter().any(|(path, _)| path.contains("libc.so")), dynamic);
        assert_eq!(files.iter().any(|(path, _)| path.contains("ld-linux")), dynamic);
    }
}
