//! Specifications: presets, TOML, validation.

use blockdev::{BlockDevice, DeviceSpec, HddSpec, QueueSpec, Raid0Spec, RamSpec, SchedulerSpec, SsdSpec, UsbSpec};

fn presets() -> Vec<DeviceSpec> {
    vec![
        DeviceSpec::Hdd(HddSpec::seven_two_k_2010s()),
        DeviceSpec::Ssd(SsdSpec::sata_2015()),
        DeviceSpec::Ram(RamSpec::ddr4(1 << 30)),
        DeviceSpec::Usb(UsbSpec::usb2_stick()),
        DeviceSpec::Raid0(Raid0Spec::of(DeviceSpec::Ssd(SsdSpec::sata_2015()), 3)),
    ]
}

#[test]
fn presets_are_valid_and_survive_toml() {
    for spec in presets() {
        assert_eq!(spec.validate(), Ok(()));
        let text = toml::to_string(&spec).expect("serialises");
        let back: DeviceSpec = toml::from_str(&text).expect("parses");
        assert_eq!(back, spec);
    }
}

#[test]
fn an_unknown_key_is_an_error() {
    for spec in presets() {
        let text = format!("colour = \"red\"\n{}", toml::to_string(&spec).expect("serialises"));
        let error = toml::from_str::<DeviceSpec>(&text).expect_err("unknown key");
        assert!(error.to_string().contains("colour"), "{error}");
    }
    assert!(toml::from_str::<QueueSpec>("nr_requests = 64\ncolour = 1").is_err());
}

#[test]
fn a_queue_needs_to_state_only_what_differs() {
    let queue: QueueSpec = toml::from_str("scheduler = \"none\"\n[deadline]\nfifo_batch = 1").expect("parses");
    assert_eq!(queue.scheduler, SchedulerSpec::None);
    assert_eq!((queue.nr_requests, queue.deadline.fifo_batch, queue.deadline.writes_starved), (128, 1, 2));
    let legacy: QueueSpec = toml::from_str("scheduler = \"deadline\"").expect("parses");
    assert_eq!(legacy.scheduler, SchedulerSpec::MqDeadline);
}

#[test]
fn errors_name_the_field_the_value_and_the_range() {
    let spec = DeviceSpec::Hdd(HddSpec { rpm: 0, ..HddSpec::seven_two_k_2010s() });
    let error = spec.validate().expect_err("no rotation");
    assert_eq!(error.to_string(), "`rpm` is 0: expected 1000 to 30000");

    let spec = DeviceSpec::Raid0(Raid0Spec::of(spec, 2));
    assert_eq!(spec.validate().expect_err("member").field, "members[0].rpm");

    let nested = DeviceSpec::Raid0(Raid0Spec::of(DeviceSpec::Raid0(Raid0Spec::of(spec, 1)), 1));
    assert_eq!(nested.validate().expect_err("nested").field, "members[0].model");

    let slow = HddSpec { seek_average_us: 30_000, ..HddSpec::seven_two_k_2010s() };
    assert_eq!(DeviceSpec::Hdd(slow).validate().expect_err("curve").field, "seek_average_us");

    let queue = QueueSpec { nr_requests: 1, ..QueueSpec::default() };
    let error = BlockDevice::new(&presets()[0], &queue, 1).expect_err("queue");
    assert_eq!(error.field, "queue.nr_requests");
}

#[test]
fn a_raid_holds_whole_chunks_of_its_smallest_member() {
    let small = DeviceSpec::Ram(RamSpec::ddr4((1 << 20) + 5000));
    let large = DeviceSpec::Ram(RamSpec::ddr4(1 << 30));
    let raid = Raid0Spec { chunk_bytes: 64 << 10, members: vec![large, small] };
    // 16 whole chunks of 64 KiB on the smaller, twice
    assert_eq!(DeviceSpec::Raid0(raid).capacity().0, 2 << 20);
}
