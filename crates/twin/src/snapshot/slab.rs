//! `/proc/slabinfo`.

use mm::Mm;
use observe::{SlabCache, Slabinfo};

pub(super) fn slabinfo(mm: &Mm) -> Slabinfo {
    let caches = mm.slabs.slabinfo().map(|info| SlabCache {
        name: info.name.to_string(),
        active_objs: info.active_objs,
        num_objs: info.num_objs,
        objsize_bytes: u64::from(info.objsize),
        objperslab: u64::from(info.objperslab),
        pagesperslab: u64::from(info.pagesperslab),
        tunables: info.tunables.map(u64::from),
        active_slabs: info.active_slabs,
        num_slabs: info.num_slabs,
        shared_avail: info.shared_avail,
    });
    Slabinfo { caches: caches.collect() }
}
