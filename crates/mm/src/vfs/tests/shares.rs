//! Objects that are charged to memory cgroups.

use units::MemcgId;

use super::*;
use crate::memcg::ROOT;

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
    let count = |mm: &Mm, memcg: MemcgId| mm.shrinker_count(ShrinkerId::Superblock, Share { node: NODE, memcg });
    assert_eq!((count(&mm, ROOT), count(&mm, group)), (3, 7));
    assert_eq!(mm.prune_dentries(&on(0), Share { node: NODE, memcg: group }, 5), 5);
    // Their inodes are on the group's list now.
    assert_eq!((count(&mm, ROOT), count(&mm, group)), (3, 7));
    assert_eq!(mm.prune_inodes(&on(0), Share { node: NODE, memcg: group }, 100), 5);
    assert_eq!((count(&mm, ROOT), count(&mm, group)), (3, 2));
    assert_valid(&mm);
    while mm.drop_slab(&on(0)) > 0 {}
    assert_eq!((count(&mm, ROOT), count(&mm, group)), (0, 0));
}
