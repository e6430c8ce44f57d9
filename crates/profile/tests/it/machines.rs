//! Machines that cannot be.

use profile::{FileSystem, MACHINES, Machine, MachineChange, Size, ZramChange};
use rules::Compressor;
use units::{Bytes, Contents};

use crate::{folder, path, refusal, with};

fn small() -> &'static str {
    MACHINES.iter().find(|(name, _)| *name == "small").unwrap().1
}

fn refused(from: &str, to: &str) -> String {
    refusal(&with(small(), from, to), Machine::load)
}

#[test]
fn malformed_toml_is_shown_with_its_line() {
    assert!(refused("count = 2", "count = ").starts_with("x.toml:5: count: "));
    assert!(refused("count = 2", "count = \"two\"").starts_with("x.toml:5: cpus.count: invalid type: string \"two\""));
    assert!(
        refused("count = 2", "cores = 2").starts_with("x.toml:5: cpus.cores: unknown field `cores`, expected one of")
    );
    assert_eq!(refused("count = 2\n", ""), "x.toml:4: cpus.count: missing field `count`");
    assert_eq!(refused("[[node]]\nmemory = \"2GiB\"\n", ""), "x.toml:1: node: missing field `node`");
    assert_eq!(refusal("", Machine::load), "x.toml:1: name: missing field `name`");
    assert!(
        refused("2GiB\"\n\n[[disk]]", "2 gigs\"\n\n[[disk]]")
            .starts_with("x.toml:10: node.memory: `2 gigs` is not a size")
    );
}

#[test]
fn processors_and_nodes_are_in_range() {
    assert_eq!(refused("count = 2", "count = 0"), "x.toml:5: cpus.count: 0 CPUs: expected 1 to 1024");
    assert_eq!(
        refused("speed = 1.0", "speed = nan"),
        "x.toml:6: cpus.speed: NaN: expected 0.01 to 100 times the reference"
    );
    assert_eq!(
        refused("speed = 1.0", "speed = 1.0\npage-ns = 0"),
        "x.toml:7: cpus.page-ns: 0: expected 1 to 1000000 ns for 4 KiB"
    );
    let compress = "speed = 1.0\ncompress-ns = { lzo = [1, 1], lz4 = [1, 1_000_001], zstd = [1, 1], source = \"\" }";
    assert_eq!(
        refused("speed = 1.0", compress),
        "x.toml:7: cpus.compress-ns: 1000001: expected 1 to 1000000 ns for 4 KiB"
    );
    let two = "[[node]]\nmemory = \"1GiB\"\n\n[[node]]\nmemory = \"1GiB\"\n\n[[node]]";
    let nodes = "x.toml:5: node: 3 nodes and 2 CPUs: expected 1 to 64 nodes, and a CPU for each";
    assert_eq!(refused("[[node]]", two), nodes);
    let memory = "x.toml:10: node.memory: expected 32MiB or more a node and 8TiB at most in all";
    assert_eq!(refused("\"2GiB\"\n\n[[disk]]", "\"31MiB\"\n\n[[disk]]"), memory);
    assert_eq!(refused("\"2GiB\"\n\n[[disk]]", "\"9TiB\"\n\n[[disk]]"), memory);
    assert!(Machine::load(&write(&with(small(), "\"2GiB\"\n\n[[disk]]", "\"32MiB\"\n\n[[disk]]"))).is_ok());
}

/// A file that outlives the test's statement.
fn write(content: &str) -> String {
    let dir = folder(&[("x.toml", content)]).keep();
    path(&dir, "x.toml")
}

#[test]
fn distances_are_one_a_node_and_ten_to_itself() {
    let two = |distance: &str| {
        let nodes = format!("[[node]]\nmemory = \"1GiB\"\ndistance = {distance}\n\n[[node]]");
        refused("[[node]]", &nodes)
    };
    for bad in ["[10]", "[10, 10]", "[21, 10]", "[10, 21, 21]"] {
        assert!(two(bad).starts_with("x.toml:11: node.distance: expected 2 distances"), "{bad}");
    }
}

#[test]
fn swap_and_mount_name_disks_that_hold_them() {
    let unknown = refused("[[swap]]\ndisk = \"disk\"", "[[swap]]\ndisk = \"sdb\"");
    assert_eq!(unknown, "x.toml:30: swap.disk: no disk is named `sdb`: expected one of disk");
    let large = refused("size = \"2GiB\"", "size = \"60GiB\"");
    assert_eq!(large, "x.toml:31: swap.size: expected no more swap on the disk `disk` than it holds");
    let size = "x.toml:31: swap.size: expected 1MiB or more an area and less than 8TiB in all";
    assert_eq!(refused("size = \"2GiB\"", "size = 0"), size);
    assert_eq!(refused("size = \"2GiB\"", "size = \"8TiB\""), size);
    let mount = refused("[mount]\ndisk = \"disk\"", "[mount]\ndisk = \"sdb\"");
    assert_eq!(mount, "x.toml:34: mount.disk: no disk is named `sdb`: expected one of disk");
    assert!(refused("fs = \"xfs\"", "fs = \"zfs\"").starts_with("x.toml:35: mount.fs: unknown variant `zfs`"));
    let tables = refused("fs = \"xfs\"", "fs = \"xfs\"\nflex-bg = true");
    assert_eq!(tables, "x.toml:36: mount.flex-bg: expected `fs = \"ext4\"` beside it");
    let mapped = refused("fs = \"xfs\"", "fs = \"xfs\"\nblock-mapped = true");
    assert_eq!(mapped, "x.toml:36: mount.block-mapped: expected `fs = \"ext4\"` beside it");
}

#[test]
fn allocation_groups_are_of_xfs_and_fit_its_partition() {
    let with_groups = |fs: &str, groups: u32| format!("fs = \"{fs}\"\nsize = \"1GiB\"\nallocation-groups = {groups}");
    for groups in [4, 64] {
        assert!(Machine::load(&write(&with(small(), "fs = \"xfs\"", &with_groups("xfs", groups)))).is_ok());
    }
    for groups in [3, 65] {
        let told = refused("fs = \"xfs\"", &with_groups("xfs", groups));
        assert_eq!(told, "x.toml:37: mount.allocation-groups: expected 4 to 64, of 16MiB or more each");
    }
    let ext4 = refused("fs = \"xfs\"", &with_groups("ext4", 8));
    assert_eq!(ext4, "x.toml:37: mount.allocation-groups: expected none for ext4, whose groups have one size");
}

#[test]
fn disks_have_possible_figures_and_names_of_their_own() {
    let depth = refused("queue_depth = 32", "queue_depth = 0");
    assert!(depth.starts_with("x.toml:18: disk.device.queue_depth: 0: expected 1 to "), "{depth}");
    let queue = refused("flush_alone = true", "flush_alone = true\n[disk.queue]\nnr_requests = 1");
    assert!(queue.contains("disk.queue.nr_requests: 1: expected 4 to "), "{queue}");
    let ahead = refused("flush_alone = true", "flush_alone = true\n[disk.queue]\nread_ahead_kb = 0");
    assert!(ahead.contains("disk.queue.read_ahead_kb: 0: expected 4 to "), "{ahead}");
    let second = "[[disk]]\nname = \"disk\"\nsource = \"none\"\ndevice = { model = \"ram\", capacity_bytes = 1_000_000, latency_ns = 1, copy_bytes_per_s = 1_000_000 }\n\n[[swap]]";
    assert_eq!(
        refused("[[swap]]", second),
        "x.toml:30: disk.name: two disks are named `disk`: expected a name of its own for each"
    );
}

#[test]
fn swap_and_file_system_share_a_disk_that_holds_both() {
    let area = |size: &str| format!("size = \"2GiB\"\n[[swap]]\ndisk = \"disk\"\nsize = \"{size}\"");
    let both = refused("size = \"2GiB\"", &area("58GiB"));
    assert_eq!(both, "x.toml:34: swap.size: expected no more swap on the disk `disk` than it holds");
    // 64 GB are 59.6 GiB: 55.6 GiB more swap leave 2 GiB.
    assert!(Machine::load(&write(&with(small(), "size = \"2GiB\"", &area("55GiB")))).is_ok());
    let full = refused("size = \"2GiB\"", "size = 63_999_000_000");
    let expected =
        "x.toml:34: mount.disk: expected 64MiB or more and less than 16TiB on the disk `disk` beside its swap";
    assert_eq!(full, expected);
}

#[test]
fn a_partition_fits_its_disk() {
    let fs = "fs = \"xfs\"";
    let expected = |least: &str| {
        format!("x.toml:36: mount.size: expected {least} or more, and no more than the disk `disk` has beside its swap")
    };
    // 64 GB are 59.6 GiB, of which swap takes 2.
    for (size, fits) in [("67108863", false), ("64MiB", true), ("57GiB", true), ("58GiB", false)] {
        for kind in ["xfs\"", "ext4\"", "ext4\"\nblock-mapped = true"] {
            let partition = format!("fs = \"{kind}\nsize = \"{size}\"");
            if fits {
                assert!(Machine::load(&write(&with(small(), fs, &partition))).is_ok(), "{kind} {size}");
            } else {
                let told = refused(fs, &partition).replace("x.toml:37", "x.toml:36");
                assert_eq!(told, expected("64MiB"), "{kind}");
            }
        }
    }
    // All of a small ext4 with `flex-bg` is one group.
    let grouped = |size: &str| format!("fs = \"ext4\"\nsize = \"{size}\"\nflex-bg = true");
    assert_eq!(refused(fs, &grouped("15MiB")), expected("16MiB"));
    assert!(Machine::load(&write(&with(small(), fs, &grouped("16MiB")))).is_ok());
}

#[test]
fn a_log_is_xfs_own_and_fits_its_partition() {
    let fs = "fs = \"xfs\"";
    for (fs_and_log, wrong) in [
        ("fs = \"xfs\"\nlog = \"64MiB\"", None),
        ("fs = \"xfs\"\nlog = \"9MiB\"", Some("expected 10MiB to 2GiB, and half of the partition at most")),
        ("fs = \"xfs\"\nlog = \"64MiB\"\nsize = \"128MiB\"", None),
        (
            "fs = \"xfs\"\nlog = \"64MiB\"\nsize = \"127MiB\"",
            Some("expected 10MiB to 2GiB, and half of the partition at most"),
        ),
        ("fs = \"ext4\"\nlog = \"64MiB\"", Some("expected no size of a log for ext4")),
    ] {
        let machine = with(small(), fs, fs_and_log);
        match wrong {
            None => assert!(Machine::load(&write(&machine)).is_ok()),
            Some(expected) => assert_eq!(refused(fs, fs_and_log), format!("x.toml:36: mount.log: {expected}")),
        }
    }
}

#[test]
fn the_pci_hole_leaves_low_memory() {
    let hole = |size: &str| with(small(), "name = \"small\"", &format!("name = \"small\"\npci-hole = \"{size}\""));
    assert!(Machine::load(&write(&hole("4064MiB"))).is_ok());
    let refusal = refusal(&hole("4065MiB"), Machine::load);
    assert_eq!(refusal, "x.toml:2: pci-hole: expected at most 4064MiB, which leaves 32MiB below 4GiB");
}

#[test]
fn what_a_booted_machine_holds_leaves_half_of_its_memory() {
    let booted = |daemons: &str, period: &str, anon: &str| {
        let table = format!(
            "[booted]\nsource = \"test\"\nkernel-threads = 1\ndaemons = {daemons}\nanon = \"{anon}\"\nperiod-s = {period}\n\
             slab-unreclaimable = \"20MiB\"\nslab-reclaimable = \"2MiB\"\npages = \"2MiB\"\n\n[[disk]]"
        );
        with(small(), "[[disk]]", &table)
    };
    assert!(Machine::load(&write(&booted("2", "10", "1000MiB"))).is_ok());
    let refusal = |text: String| refusal(&text, Machine::load);
    let half = "expected sizes that take half of the machine's memory at most";
    assert_eq!(refusal(booted("2", "10", "1001MiB")), format!("x.toml:16: booted: {half}"));
    let period = "x.toml:17: booted.period-s: 0: expected 0.001 to 10^6 seconds";
    assert_eq!(refusal(booted("2", "0.0", "1MiB")), period);
    let many = "x.toml:15: booted.daemons: 100001: expected 100000 at most";
    assert_eq!(refusal(booted("100001", "10", "1MiB")), many);
}

fn changed(name: &str, memory: Option<&str>, cpus: Option<u32>) -> Result<Machine, String> {
    let memory = memory.map(|text| Size::parse(text).unwrap());
    let machine = Machine::load(name).unwrap();
    machine.changed(&MachineChange { memory, cpus, ..MachineChange::default() }).map_err(|error| error.to_string())
}

#[test]
fn a_changed_machine_is_told_by_its_name_and_its_text() {
    let machine = changed("haswell-2s", Some("16GiB"), Some(8)).unwrap();
    assert_eq!(machine.name.get_ref(), "haswell-2s-16GiB-8cpus");
    assert_eq!((machine.memory(), *machine.cpus.count.get_ref()), (Bytes::gib(16), 8));
    assert_eq!(machine.text.matches("memory = \"8GiB\"\n").count(), 2, "{}", machine.text);
    let again = Machine::load(&write(&machine.text)).unwrap();
    assert_eq!((again.memory(), again.name), (Bytes::gib(16), machine.name));
    // Disks and swap stay.
    assert_eq!(machine.swaps[0].get_ref().size, Size(Bytes::gib(8)));
}

#[test]
fn zram_comes_beside_what_swap_there_is_and_the_file_system_is_another() {
    let zram = Some(ZramChange::parse("512MiB").unwrap());
    let change = MachineChange { zram, fs: Some(FileSystem::Ext4), ..MachineChange::default() };
    let machine = Machine::load("small").unwrap().changed(&change).unwrap();
    assert_eq!(machine.name.get_ref(), "small-zram-512MiB-ext4");
    let zram = machine.zrams[0].get_ref();
    assert_eq!((zram.size, zram.priority, zram.compressor), (Size(Bytes::mib(512)), 100, Compressor::LzoRle));
    assert_eq!((machine.swaps.len(), machine.has_swap()), (1, true));
    assert_eq!(*machine.mount.as_ref().unwrap().get_ref().fs.get_ref(), FileSystem::Ext4);
    assert!(Machine::load(&write(&machine.text)).is_ok());
}

#[test]
fn zram_may_have_a_compressor_of_its_own() {
    let lz4 = ZramChange { size: Size(Bytes::mib(64)), compressor: Compressor::Lz4 };
    assert_eq!(ZramChange::parse("64MiB:lz4"), Ok(lz4));
    assert_eq!(ZramChange::parse("64MiB:lzo-rle"), ZramChange::parse("64MiB"), "the default");
    let change = MachineChange { zram: Some(lz4), ..MachineChange::default() };
    let machine = Machine::load("small").unwrap().changed(&change).unwrap();
    assert_eq!(machine.name.get_ref(), "small-zram-64MiB-lz4");
    assert_eq!(machine.zrams[0].get_ref().compressor, Compressor::Lz4);
    let expected = "`gzip` is no compressor: expected one of lzo, lzo-rle, lz4, zstd";
    assert_eq!(ZramChange::parse("64MiB:gzip"), Err(expected.to_string()));
    assert!(ZramChange::parse("64MiB:").unwrap_err().starts_with("`` is no compressor"));
    assert!(ZramChange::parse("lots:lz4").unwrap_err().starts_with("`lots` is not a size"));
}

#[test]
fn contents_follow_from_their_ratio() {
    assert_eq!(Machine::load("small").unwrap().contents(), Contents { mean_bytes: 2048, same_filled_percent: 0 });
    let text = with(
        small(),
        "fs = \"xfs\"\n",
        "fs = \"xfs\"\n[contents]\nratio = 3\nsame-filled-percent = 7\nsource = \"\"\n",
    );
    // 4096 by 3, rounded.
    let expected = Contents { mean_bytes: 1365, same_filled_percent: 7 };
    assert_eq!(Machine::load(&write(&text)).unwrap().contents(), expected);
}

#[test]
fn compressed_swap_is_in_range() {
    let after = |text: &str| refused("fs = \"xfs\"\n", &format!("fs = \"xfs\"\n{text}"));
    let size = after("[[zram]]\nsize = \"1KiB\"\n");
    assert_eq!(size, "x.toml:37: zram.size: expected 1MiB or more, and less than 8TiB of swap in all");
    let compressor = after("[[zram]]\nsize = \"1GiB\"\ncompressor = \"gzip\"\n");
    assert!(
        compressor.starts_with("x.toml:38: zram.compressor: unknown variant `gzip`, expected one of"),
        "{compressor}"
    );
    let contents = |ratio: &str, same: &str| {
        after(&format!("[contents]\nratio = {ratio}\nsame-filled-percent = {same}\nsource = \"\"\n"))
    };
    assert_eq!(contents("0.5", "0"), "x.toml:37: contents.ratio: 0.5: expected 1 to 100");
    assert_eq!(contents("2", "101"), "x.toml:38: contents.same-filled-percent: 101: expected 0 to 100 percent");
}

#[test]
fn nodes_keep_their_shares_in_whole_pageblocks() {
    let uneven = with(small(), "[[node]]", "[[node]]\nmemory = \"1GiB\"\n\n[[node]]");
    let machine = Machine::load(&write(&uneven)).unwrap();
    let change = MachineChange { memory: Some(Size(Bytes::mib(301))), ..MachineChange::default() };
    let nodes = machine.changed(&change).unwrap().nodes;
    let sizes: Vec<Size> = nodes.iter().map(|node| *node.memory.get_ref()).collect();
    // 301 MiB in the proportion of 1 to 2, rounded down to 2 MiB.
    assert_eq!(sizes, [Size(Bytes::mib(100)), Size(Bytes::mib(200))]);
}

#[test]
fn a_machine_that_cannot_be_so_is_refused() {
    let memory = changed("haswell-2s", Some("40MiB"), None).unwrap_err();
    let expected = "machine haswell-2s with 40MiB of memory: node.memory: expected 32MiB or more a node";
    assert!(memory.starts_with(expected), "{memory}");
    let cpus = changed("haswell-2s", None, Some(1)).unwrap_err();
    assert!(cpus.starts_with("machine haswell-2s with 1 CPUs: node: 2 nodes and 1 CPUs: expected"), "{cpus}");
}

#[test]
fn names_can_be_told_in_a_line_and_be_part_of_a_path() {
    let expected = "expected a name of 1 to 128 bytes without `/` and control characters";
    let long = "x".repeat(129);
    for bad in ["", "  ", "a/b", "a\\nb", "a\\u0000b", long.as_str()] {
        let machine = refused("name = \"small\"", &format!("name = \"{bad}\""));
        assert_eq!(machine, format!("x.toml:1: name: {expected}"), "{bad}");
        let disk = refused("name = \"disk\"", &format!("name = \"{bad}\""));
        assert_eq!(disk, format!("x.toml:13: disk.name: {expected}"), "{bad}");
    }
    // Quotes and what is not ASCII stay what they are when the machine is changed.
    let odd = "a \"b\" \u{200b}\\";
    let text = with(small(), "name = \"small\"", &format!("name = '{odd}'"));
    let change = MachineChange { cpus: Some(1), ..MachineChange::default() };
    let changed = Machine::load(&write(&text)).unwrap().changed(&change).unwrap();
    assert_eq!(*changed.name.get_ref(), format!("{odd}-1cpus"));
    let longest = with(small(), "name = \"small\"", &format!("name = \"{}\"", &long[1..]));
    let error = Machine::load(&write(&longest)).unwrap().changed(&change).unwrap_err().to_string();
    assert!(error.ends_with(&format!("with 1 CPUs: name: {expected}")), "{error}");
}

#[test]
fn sysctls_of_a_machine_are_told_with_their_line() {
    let after = |text: &str| refused("fs = \"xfs\"\n", &format!("fs = \"xfs\"\n[sysctls]\n{text}"));
    let unknown = after("\"vm.swappiness\" = 10\nfoo = 1\n");
    assert!(unknown.starts_with("x.toml:38: sysctls: unknown tunable `foo`; "), "{unknown}");
    let value = after("\"vm.swappiness\" = 1000\n");
    assert_eq!(value, "x.toml:37: sysctls: vm.swappiness: `1000` is not a whole number from 0 to 200");
}

/// The small machine's 2 GiB as zones with these names, first frames and lengths, all on node 0.
fn zoned(zones: &[(&str, u64, u64)]) -> String {
    let zone = |(name, start, pages): &(&str, u64, u64)| {
        format!(
            "[[zone]]\nnode = 0\nname = \"{name}\"\nstart-pfn = {start}\nspanned = {pages}\npresent = {pages}\nmanaged = {pages}\n"
        )
    };
    with(small(), "fs = \"xfs\"\n", &format!("fs = \"xfs\"\n{}", zones.iter().map(zone).collect::<String>()))
}

#[test]
fn zones_are_those_of_their_node() {
    let refused = |zones: &[(&str, u64, u64)]| refusal(&zoned(zones), Machine::load);
    // 2 GiB are 524288 pages. Those of the zones are rounded up to pageblocks of 512.
    assert!(Machine::load(&write(&zoned(&[("DMA", 0, 4096), ("DMA32", 4096, 520_192)]))).is_ok());
    assert!(Machine::load(&write(&zoned(&[("DMA", 0, 4096), ("DMA32", 4096, 519_681)]))).is_ok());
    let order = "expected each zone of a node once, in the order DMA, DMA32, Normal, Movable";
    let twice = refused(&[("Normal", 1 << 20, 262_144), ("Normal", 2 << 20, 262_144)]);
    assert_eq!(twice, format!("x.toml:45: zone.name: Normal behind Normal on node 0: {order}"));
    let lower = refused(&[("DMA32", 0, 262_144), ("Normal", 1 << 20, 4096), ("DMA32", 2 << 20, 4096)]);
    assert_eq!(lower, "x.toml:54: zone.spanned: 4096 frames from 2097152: expected DMA32 to end at 1048576");
    let lower = refused(&[("Movable", 1 << 20, 262_144), ("Normal", 2 << 20, 262_144)]);
    assert_eq!(lower, format!("x.toml:45: zone.name: Normal behind Movable on node 0: {order}"));
    let high = refused(&[("DMA", 262_144, 524_288)]);
    assert_eq!(high, "x.toml:40: zone.spanned: 524288 frames from 262144: expected DMA to end at 4096");
    for (pages, told) in [(262_144, "262144"), (524_289, "524289"), (523_776, "523776")] {
        let size = refused(&[("Normal", 1 << 20, pages)]);
        let expected =
            format!("that of node 0's zones, from the {told} pages that exist to the {told} from first to last");
        assert_eq!(size, format!("x.toml:10: node.memory: 2GiB of memory: expected {expected}"));
    }
}
