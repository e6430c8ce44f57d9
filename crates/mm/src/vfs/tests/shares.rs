//! Objects that are charged to memory cgroups.

use units::MemcgId;

use super::*;
use crate::ZoneKind;
use crate::memcg::ROOT;
use crate::reclaim::{DirectReclaim, Step};

#[test]
fn objects_are_shrunk_with_the_group_that_they_are_charged_to() {
    let mut mm = machine(1, 1 << 15, Rules::newest());
    let fs = mm.vfs_mkfs(FsSpec::ext4(3, Bytes::gib(4)));
    let dir = mm.vfs_root(fs);
    let group = mm.memcg_create(ROOT, "group").expect("there is room");
    for (memcg, files) in [(ROOT, 3), (group, 7)] {
        let env = Env { task: TaskFlags { memcg, ..TaskFlags::default() }, ..on(0) };
        for _ in 0..files {
            let handle = mm.vfs_create(&env, dir).expect("memory is plentiful");
            mm.vfs_close(&env, handle);
        }
    }
    let count = |mm: &mut Mm, memcg: MemcgId| mm.shrinker_count(ShrinkerId::Superblock, Share { node: NODE, memcg });
    assert_eq!((count(&mut mm, ROOT), count(&mut mm, group)), (3, 7));
    assert_eq!(mm.prune_dentries(&on(0), Share { node: NODE, memcg: group }, 5), 5);
    // Their inodes are on the group's list now.
    assert_eq!((count(&mut mm, ROOT), count(&mut mm, group)), (3, 7));
    assert_eq!(mm.prune_inodes(&on(0), Share { node: NODE, memcg: group }, 100), 5);
    assert_eq!((count(&mut mm, ROOT), count(&mut mm, group)), (3, 2));
    assert_valid(&mm);
    while mm.drop_slab(&on(0)) > 0 {}
    assert_eq!((count(&mut mm, ROOT), count(&mut mm, group)), (0, 0));
}

#[test]
fn reclaim_shrinks_the_objects_of_groups_too() {
    for rules in [Rules::newest(), old_rules()] {
        let mut mm = machine(1, 1 << 13, rules);
        let fs = mm.vfs_mkfs(FsSpec::ext4(3, Bytes::gib(4)));
        let dir = mm.vfs_root(fs);
        let group = mm.memcg_create(ROOT, "group").expect("there is room");
        let env = Env { task: TaskFlags { memcg: group, ..TaskFlags::default() }, ..on(0) };
        for _ in 0..200 {
            let handle = mm.vfs_create(&env, dir).expect("memory is plentiful");
            mm.vfs_close(&env, handle);
        }
        let share = Share { node: NODE, memcg: group };
        assert_eq!(mm.shrinker_count(ShrinkerId::Superblock, share), 200);
        let request = AllocRequest { gfp: Gfp::KERNEL, order: Order(0), node: NODE };
        let mut reclaim = DirectReclaim::new(request, ZoneKind::Normal);
        while reclaim.step(&mut mm, &on(0)) != Step::Done {}
        assert!(mm.shrinker_count(ShrinkerId::Superblock, share) < 200, "down to priority 0 nothing else is there");
        assert_valid(&mm);
    }
}
