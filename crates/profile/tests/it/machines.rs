//! Machines that cannot be.

use profile::{MACHINES, Machine};
use units::Bytes;

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
    assert!(refused("count = 2", "count = \"two\"").starts_with("x.toml:5: count: invalid type: string \"two\""));
    assert!(refused("count = 2", "cores = 2").starts_with("x.toml:5: cores: unknown field `cores`, expected one of"));
    assert!(refused("count = 2\n", "").contains("missing field `count`"));
    assert!(
        refused("2GiB\"\n\n[[disk]]", "2 gigs\"\n\n[[disk]]").starts_with("x.toml:10: memory: `2 gigs` is not a size")
    );
}

#[test]
fn processors_and_nodes_are_in_range() {
    assert_eq!(refused("count = 2", "count = 0"), "x.toml:5: cpus.count: 0 CPUs: expected 1 to 1024");
    assert_eq!(
        refused("speed = 1.0", "speed = nan"),
        "x.toml:6: cpus.speed: NaN: expected 0.01 to 100 times the reference"
    );
    let two = "[[node]]\nmemory = \"1GiB\"\n\n[[node]]\nmemory = \"1GiB\"\n\n[[node]]";
    assert_eq!(refused("[[node]]", two), "x.toml:5: node: 3 nodes: expected 1 to 64, and a CPU for each");
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
    assert_eq!(unknown, "x.toml:29: swap.disk: no disk is named `sdb`: expected one of disk");
    let large = refused("size = \"2GiB\"", "size = \"60GiB\"");
    assert_eq!(large, "x.toml:29: swap.size: the area is larger than the disk `disk`");
    assert_eq!(refused("size = \"2GiB\"", "size = 0"), "x.toml:29: swap.size: expected 1MiB to 8TiB");
    let mount = refused("[mount]\ndisk = \"disk\"", "[mount]\ndisk = \"sdb\"");
    assert_eq!(mount, "x.toml:33: mount.disk: no disk is named `sdb`: expected one of disk");
    assert!(refused("fs = \"xfs\"", "fs = \"zfs\"").starts_with("x.toml:35: fs: unknown variant `zfs`"));
}

#[test]
fn disks_have_possible_figures_and_names_of_their_own() {
    let depth = refused("queue_depth = 32", "queue_depth = 0");
    assert!(depth.starts_with("x.toml:15: disk disk: `queue_depth` is 0: expected 1 to "), "{depth}");
    let queue = refused("flush_alone = true", "flush_alone = true\n[disk.queue]\nnr_requests = 1");
    assert!(queue.contains("disk disk: `queue.nr_requests` is 1: expected 4 to "), "{queue}");
    let second = "[[disk]]\nname = \"disk\"\nsource = \"none\"\ndevice = { model = \"ram\", capacity_bytes = 1_000_000, latency_ns = 1, copy_bytes_per_s = 1_000_000 }\n\n[[swap]]";
    assert_eq!(refused("[[swap]]", second), "x.toml:32: disk disk: two disks have this name");
}

#[test]
fn scaling_down_divides_the_memory_in_the_text_too() {
    let machine = Machine::load("haswell-2s").unwrap();
    let quick = machine.scaled_down(32).unwrap();
    assert_eq!((machine.memory(), quick.memory()), (Bytes::gib(64), Bytes::gib(2)));
    assert_eq!(quick.text.matches("memory = 1073741824\n").count(), 2, "{}", quick.text);
    assert_eq!(Machine::load(&write(&quick.text)).unwrap().memory(), Bytes::gib(2));
    assert_eq!(quick.scaled_down(2).unwrap().memory(), Bytes::gib(1));
    let error = machine.scaled_down(4096).unwrap_err().to_string();
    assert!(error.starts_with("machine haswell-2s with its memory divided by 4096:"), "{error}");
}
