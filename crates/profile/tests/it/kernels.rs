//! Kernels, derived and not.

use profile::{Kernel, Size};
use rules::{CompactionSearch, Era, WatermarkBoost, ZoneSpreading};

use crate::{folder, path, refusal};

const HEAD: &str = "name = \"mine\"\ndescription = \"\"\nbase = \"4.20-rc3\"\n";

fn refused(rest: &str) -> String {
    refusal(&format!("{HEAD}{rest}"), Kernel::load)
}

#[test]
fn a_derived_kernel_differs_in_what_it_states_and_in_nothing_else() {
    let [base, spread, boost] =
        ["4.20-rc3", "4.20-rc3-lowzone", "4.20-rc3-boost"].map(|name| Kernel::load(name).unwrap());
    assert_eq!((base.rules.zone_spreading, base.rules.watermark_boost), (ZoneSpreading::Off, WatermarkBoost::Off));
    let mut expected = base.rules.clone();
    expected.zone_spreading = ZoneSpreading::FastPath;
    assert_eq!(spread.rules, expected);
    // Its own file takes back what its base has.
    expected.zone_spreading = ZoneSpreading::Off;
    expected.watermark_boost = WatermarkBoost::PageblockStep;
    assert_eq!(boost.rules, expected);
    assert_eq!((base.tunables.watermark_boost_factor, boost.tunables.watermark_boost_factor), (0, 15_000));
    assert_eq!((boost.era, boost.omitted), (Era::V4_20, base.omitted));
}

#[test]
fn the_text_of_a_derived_kernel_is_whole() {
    let kernel = Kernel::load("5.2").unwrap();
    let dir = folder(&[("whole.toml", &kernel.text)]);
    let again = Kernel::load(&path(dir.path(), "whole.toml")).unwrap();
    assert!(!kernel.text.contains("base ="), "{}", kernel.text);
    assert_eq!((&again.rules, &again.tunables), (&kernel.rules, &kernel.tunables));
    assert_eq!((again.name, again.era, again.text), (kernel.name, kernel.era, kernel.text));
}

#[test]
fn a_base_may_be_a_file_in_the_same_folder() {
    let derived = "name = \"b\"\ndescription = \"\"\nbase = \"a.toml\"\n[rules]\n\
                   compaction-search = { rule = \"free-lists\", source = \"e380bebe4771\" }\n";
    let dir = folder(&[("a.toml", HEAD), ("b.toml", derived)]);
    let kernel = Kernel::load(&path(dir.path(), "b.toml")).unwrap();
    assert_eq!(kernel.rules.compaction_search, CompactionSearch::FreeLists);
    assert_eq!(kernel.rules.zone_spreading, ZoneSpreading::Off);
}

#[test]
fn kernels_in_a_circle_are_refused() {
    let based_on = |base: &str| HEAD.replace("4.20-rc3", base);
    let dir = folder(&[("a.toml", &based_on("b.toml")), ("b.toml", &based_on("a.toml"))]);
    let error = Kernel::load(&path(dir.path(), "a.toml")).unwrap_err().to_string();
    assert!(
        error.ends_with("a.toml:3: base: kernels are based on each other in a circle, or more than 16 deep"),
        "{error}"
    );
}

#[test]
fn unknown_bases_decisions_rules_and_tunables_are_named() {
    let unknown = refusal(&HEAD.replace("4.20-rc3", "4.19"), Kernel::load);
    let expected =
        "x.toml:3: base: unknown kernel `4.19`: did you mean `4.18`? not a file, and not one of 2.6.39-rc7, ";
    assert!(unknown.starts_with(expected), "{unknown}");
    let decision = refused("[rules]\nzone-spread = { rule = \"off\", source = \"x\" }\n");
    assert!(
        decision.starts_with("x.toml:5: zone-spread: no such decision: expected one of zone-spreading, "),
        "{decision}"
    );
    let rule = refused("[rules]\nzone-spreading = { rule = \"slow-path\", source = \"x\" }\n");
    let expected = "x.toml:5: zone-spreading: unknown variant `slow-path`, expected `off` or `fast-path`";
    assert_eq!(rule, expected);
    let source = refused("[rules]\nzone-spreading = { rule = \"off\", source = \" \" }\n");
    assert_eq!(source, "x.toml:5: zone-spreading: a rule needs a source");
    let tunable = refused("[tunables]\n\"vm.swapiness\" = 10\n");
    assert!(
        tunable.starts_with("x.toml:5: vm.swapiness: unknown tunable `vm.swapiness`; did you mean `vm.swappiness`?")
    );
    let value = refused("[tunables]\n\"vm.swappiness\" = 201\n");
    assert!(value.ends_with("vm.swappiness: `201` is not a whole number from 0 to 200"), "{value}");
}

#[test]
fn a_kernel_without_a_base_states_everything() {
    let whole = Kernel::load("6.12").unwrap().text;
    let missing = "this one is missing";
    let rule = refusal(&whole.replace("[rules.anon-start]\nrule = \"inactive\"", "[rules.anon-start]"), Kernel::load);
    assert!(rule.contains("missing field `rule`"), "{rule}");
    let (before, from) = whole.split_once("[rules.scan-balance]").unwrap();
    let (_, after) = from.split_once("\n[").unwrap();
    let rule = refusal(&format!("{before}[{after}"), Kernel::load);
    assert!(rule.starts_with("x.toml:1: scan-balance: ") && rule.ends_with(missing), "{rule}");
    let era = refusal(&whole.replace("era = \"6.12\"\n", ""), Kernel::load);
    assert!(era.starts_with("x.toml:1: era: ") && era.ends_with(missing), "{era}");
}

#[test]
fn the_image_is_that_of_one_build() {
    let image = "[image]\nstart = \"16MiB\"\ntext = \"14343KiB\"\nrodata = 4096\nsource = \"dmesg\"\n";
    let derived = HEAD.replace("4.20-rc3", "a.toml");
    let dir = folder(&[("a.toml", &format!("{HEAD}{image}")), ("b.toml", &derived)]);
    let [stated, based] = ["a.toml", "b.toml"].map(|name| Kernel::load(&path(dir.path(), name)).unwrap());
    let def = stated.image.clone().unwrap();
    assert_eq!([def.start, def.text, def.rodata], ["16MiB", "14343KiB", "4KiB"].map(|size| Size::parse(size).unwrap()));
    assert_eq!(based.image, None, "another build");
    let dir = folder(&[("whole.toml", &stated.text)]);
    assert_eq!(Kernel::load(&path(dir.path(), "whole.toml")).unwrap().image, stated.image);
    let change = |from: &str, to: &str| refused(&image.replace(from, to));
    assert_eq!(change("16MiB", "5MiB"), "x.toml:5: image.start: expected the address of a pageblock");
    assert_eq!(change("4096", "\"1025MiB\""), "x.toml:4: image: expected sizes of 1 GiB at most");
    assert_eq!(change("dmesg", " "), "x.toml:8: image.source: an image needs a source");
    let wrong = "x.toml:8: image.boot-only: expected whole pages behind the read-only data that do not overlap";
    // 16 MiB, and the pageblocks of text and read-only data: 34 MiB.
    for (from, to) in
        [("33MiB", "35MiB"), ("40MiB", "40MiB"), ("40MiB", "41943041"), ("40MiB", "2GiB"), ("44MiB", "46MiB")]
    {
        let twice = "{ start = \"45MiB\", end = \"47MiB\" }";
        let part = format!("boot-only = [{twice}, {{ start = \"{from}\", end = \"{to}\" }}]\nsource");
        assert_eq!(change("source", &part), wrong, "{from} {to}");
    }
    let freed = image.replace("source", "boot-only = [{ start = \"34MiB\", end = \"41MiB\" }]\nfree = true\nsource");
    let dir = folder(&[("freed.toml", &format!("{HEAD}{freed}"))]);
    let def = Kernel::load(&path(dir.path(), "freed.toml")).unwrap().image.unwrap();
    assert_eq!((def.boot_only.len(), def.free), (1, true));
}

#[test]
fn tunables_can_be_set_over_the_kernels_own() {
    let kernel = Kernel::load("5.0").unwrap();
    let changes = [("vm.watermark_boost_factor".to_string(), "0".to_string())];
    assert_eq!(kernel.tunables_with(&changes).unwrap().watermark_boost_factor, 0);
    assert!(kernel.tunables_with(&[("vm.x".to_string(), "0".to_string())]).is_err());
}

#[test]
fn a_name_can_be_told_in_a_line_and_be_part_of_a_path() {
    for bad in ["", "a/b", "a\\u0000b"] {
        let name = format!("name = \"{bad}\"\ndescription = \"\"\nbase = \"5.0\"\n");
        let expected = "x.toml:1: name: expected a name of 1 to 128 bytes without `/` and control characters";
        assert_eq!(refusal(&name, Kernel::load), expected, "{bad}");
    }
}
