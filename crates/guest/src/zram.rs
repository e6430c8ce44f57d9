//! Swap in compressed memory: makes zram devices and uses them.
//!
//! Source: `disksize_store()`, `comp_algorithm_store()`, `hot_add_show()`, the parameter `num_devices` (drivers/block/zram/zram_drv.c,
//! 4.4 and 6.12); Documentation/admin-guide/blockdev/zram.rst.

use std::fs;
use std::path::Path;

use crate::agent::write;
use crate::job::Zram;
use crate::swap;

/// The driver, which makes as many devices as it is told when it is loaded.
const MODULE: &str = "zram.ko";
/// One more device is there once this was read (since 4.2).
const HOT_ADD: &str = "/sys/class/zram-control/hot_add";

/// What a module is told when it is loaded.
pub(crate) fn module_parameters(module: &str, zrams: &[Zram]) -> String {
    if module == MODULE { format!("num_devices={}", zrams.len()) } else { String::new() }
}

/// Makes the devices and uses each with its priority.
pub(crate) fn prepare(zrams: &[Zram]) -> Result<(), String> {
    for (number, zram) in zrams.iter().enumerate() {
        let place = format!("/sys/block/zram{number}");
        if !Path::new(&place).exists() {
            // The driver is built in and made one device.
            fs::read_to_string(HOT_ADD).map_err(|error| format!("{place}: expected this zram: {HOT_ADD}: {error}"))?;
        }
        choose_compressor(&format!("{place}/comp_algorithm"), &zram.compressor)?;
        let sized = write(&format!("{place}/disksize"), &zram.bytes.to_string());
        sized.map_err(|error| format!("{error}: the module that compresses by {} may be missing", zram.compressor))?;
        let device = format!("/dev/zram{number}");
        let made = swap::make_swap(Path::new(&device));
        made.and_then(|()| swap::swap_on(Path::new(&device), Some(zram.priority)))
            .map_err(|error| format!("swap on {device}: {error}"))?;
    }
    Ok(())
}

/// Sets how a device compresses, if its kernel can.
fn choose_compressor(file: &str, wanted: &str) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let offered = offered(&text);
    if !offered.contains(&wanted) {
        let remedy = "give --zram SIZE:COMPRESSOR, or [[zram]] a `compressor`, with one of them";
        return Err(format!(
            "zram: expected a kernel that compresses by {wanted}; it has {}; {remedy}",
            offered.join(", ")
        ));
    }
    write(file, wanted)
}

/// The words of `comp_algorithm`, the chosen one in brackets: `lzo lzo-rle [lz4] zstd`.
fn offered(text: &str) -> Vec<&str> {
    text.split_whitespace().map(|word| word.trim_matches(['[', ']'])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compressors_of_a_kernel_are_the_words_of_its_file() {
        assert_eq!(offered("lzo [lzo-rle] lz4 \n"), ["lzo", "lzo-rle", "lz4"]);
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        // What Debian's 6.12 for clouds has.
        fs::write(&file, "[lz4] lz4hc zstd deflate \n").unwrap();
        let path = file.to_str().unwrap();
        let error = choose_compressor(path, "lzo-rle").unwrap_err();
        let told = "zram: expected a kernel that compresses by lzo-rle; it has lz4, lz4hc, zstd, deflate; give --zram SIZE:COMPRESSOR, ";
        assert!(error.starts_with(told), "{error}");
        choose_compressor(path, "zstd").unwrap();
        assert!(fs::read_to_string(path).unwrap().starts_with("zstd"));
    }

    #[test]
    fn the_driver_makes_as_many_devices_as_are_wanted() {
        let zram = Zram { bytes: 1 << 20, priority: 100, compressor: "lz4".to_string() };
        assert_eq!(module_parameters("zram.ko", &[zram.clone(), zram.clone()]), "num_devices=2");
        assert_eq!(module_parameters("lz4.ko", &[zram]), "");
    }
}
