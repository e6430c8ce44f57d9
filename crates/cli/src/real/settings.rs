//! Where a tunable stands in `/proc` and `/sys`.

use rules::{TUNABLES, Tunables};

use crate::failure::Failure;

/// Names that do not stand below `/proc/sys`, and where they do.
const ELSEWHERE: &[(&str, &str)] = &[
    ("thp.", "/sys/kernel/mm/transparent_hugepage/"),
    ("lru_gen.", "/sys/kernel/mm/lru_gen/"),
    ("zswap.", "/sys/module/zswap/parameters/"),
];
/// Parts of `/proc/sys` that a run may change.
const SYSCTLS: &[&str] = &["vm.", "kernel.", "fs."];

/// The file of each setting and what is written to it. A name of the registry has its value checked; the kernel checks the others.
pub(super) fn files(settings: &[(String, String)]) -> Result<Vec<(String, String)>, Failure> {
    settings.iter().map(|(name, value)| Ok((file(name, value)?, value.clone()))).collect()
}

fn file(name: &str, value: &str) -> Result<String, Failure> {
    let known = TUNABLES.iter().any(|tunable| tunable.name == name);
    let plain = !name.contains("..") && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let sysctl = SYSCTLS.iter().any(|part| name.starts_with(part));
    let elsewhere = ELSEWHERE.iter().find_map(|(part, dir)| Some((dir, name.strip_prefix(part)?)));
    if known || !plain || !(sysctl || elsewhere.is_some()) {
        // The registry also knows what name was probably meant.
        Tunables::default().set(name, value)?;
    }
    Ok(match elsewhere {
        Some((dir, rest)) => format!("{dir}{rest}"),
        None => format!("/proc/sys/{}", name.replace('.', "/")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_files() {
        for (name, value, path) in [
            ("vm.swappiness", "10", "/proc/sys/vm/swappiness"),
            ("vm.user_reserve_kbytes", "1", "/proc/sys/vm/user_reserve_kbytes"),
            ("thp.enabled", "madvise", "/sys/kernel/mm/transparent_hugepage/enabled"),
            ("lru_gen.enabled", "n", "/sys/kernel/mm/lru_gen/enabled"),
            ("zswap.max_pool_percent", "30", "/sys/module/zswap/parameters/max_pool_percent"),
        ] {
            assert_eq!(file(name, value).unwrap(), path);
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for (name, value) in
            [("vm.swappiness", "201"), ("swappiness", "1"), ("vm.../../etc/x", "1"), ("thp.enabled", "x")]
        {
            assert!(file(name, value).is_err(), "{name}");
        }
    }
}
