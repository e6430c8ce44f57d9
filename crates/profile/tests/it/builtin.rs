//! Every built-in file loads, under the name that it gives itself.

use profile::{KERNELS, Kernel, MACHINES, Machine, STUDIES, Study};

#[test]
fn every_machine_loads() {
    for (name, content) in MACHINES {
        let machine = Machine::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((machine.name.get_ref().as_str(), machine.text.as_str()), (*name, *content));
        assert!(machine.mount.is_some(), "{name}");
        assert_eq!(machine.swaps.is_empty(), name.ends_with("-noswap"), "{name}");
    }
}

#[test]
fn every_kernel_loads() {
    for (name, _) in KERNELS {
        let kernel = Kernel::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kernel.name, *name);
    }
}

#[test]
fn every_study_loads() {
    for (name, _) in STUDIES {
        let study = Study::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(study.name, *name);
        assert!(!study.published.is_empty(), "{name}");
    }
}

#[test]
fn unknown_names_are_answered_with_those_there_are() {
    let error = Machine::load("skylake").unwrap_err().to_string();
    let names: Vec<&str> = MACHINES.iter().map(|(name, _)| *name).collect();
    let expected = "unknown machine `skylake`: did you mean `skylake-1s`? not a file, and not one of";
    assert_eq!(error, format!("{expected} {}", names.join(", ")));
    assert!(Kernel::load("4.20").unwrap_err().to_string().contains("4.20-rc3-boost"));
    assert!(Study::load("boost").unwrap_err().to_string().contains("not one of watermark-boost"));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Machine::load("no-such-folder/machine.toml").unwrap_err().to_string();
    assert!(error.starts_with("no-such-folder/machine.toml: "), "{error}");
    // A folder is no file either.
    let error = Kernel::load("/tmp").unwrap_err().to_string();
    assert!(error.starts_with("/tmp: "), "{error}");
}
