//! What has to be known of ELF files: the loader, a module's dependencies, and what can be cut off.

use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection};

/// Whether a program needs a dynamic loader.
pub(crate) fn is_dynamic(program: &[u8]) -> Result<bool, String> {
    let header = FileHeader64::<Endianness>::parse(program).map_err(|error| error.to_string())?;
    let endian = header.endian().map_err(|error| error.to_string())?;
    let segments = header.program_headers(endian, program).map_err(|error| error.to_string())?;
    Ok(segments.iter().any(|segment| segment.p_type(endian) == PT_INTERP))
}

/// The program without what only debuggers read: everything behind its last segment, section headers included.
pub(crate) fn stripped(program: &[u8]) -> Result<Vec<u8>, String> {
    let header = FileHeader64::<Endianness>::parse(program).map_err(|error| error.to_string())?;
    let endian = header.endian().map_err(|error| error.to_string())?;
    let segments = header.program_headers(endian, program).map_err(|error| error.to_string())?;
    let end = segments.iter().map(|s| s.p_offset(endian).saturating_add(s.p_filesz(endian))).max().unwrap_or(0);
    let end = usize::try_from(end).ok().filter(|end| *end >= 64 && *end <= program.len());
    let mut kept = program[..end.ok_or("its segments are not in the file")?].to_vec();
    // e_shoff; e_shnum and e_shstrndx: there are no sections any more.
    kept[40..48].fill(0);
    kept[60..64].fill(0);
    Ok(kept)
}

/// The modules that a module needs, as it names them.
pub(crate) fn module_dependencies(module: &[u8]) -> Result<Vec<String>, String> {
    let file = object::File::parse(module).map_err(|error| error.to_string())?;
    let info = file.section_by_name(".modinfo").ok_or("it has no section .modinfo")?;
    let info = info.data().map_err(|error| error.to_string())?;
    let depends = info.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"depends="));
    let names = String::from_utf8_lossy(depends.unwrap_or_default()).into_owned();
    Ok(names.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_without_its_sections_is_still_a_program() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let kept = stripped(&program).unwrap();
        assert!(kept.len() < program.len());
        assert_eq!(is_dynamic(&kept), is_dynamic(&program));
        let place = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&place, &kept).unwrap();
        std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let listed = std::process::Command::new(&place).arg("--list").output().unwrap();
        assert!(listed.status.success());
    }

    #[test]
    fn what_is_no_program_is_refused() {
        assert!(stripped(b"#!/bin/sh\n").is_err());
        assert!(module_dependencies(b"").is_err());
    }
}
