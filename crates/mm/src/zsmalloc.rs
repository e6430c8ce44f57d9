//! zsmalloc: where compressed pages are kept.
//!
//! Rule: an object and its handle take a place in the smallest size class that they fit into, 16 bytes apart. A class has
//! zspages of 1 to 8 single pages, as many as waste least of the last; classes whose zspages hold equally many objects in
//! equally many pages are one. A new object goes into the fullest zspage of its class that has room, to a tenth; what no zspage has
//! room for gets a new one. A zspage without objects is freed. From some size on an object takes a page of its own.
//! Source: `zs_create_pool()`, `calculate_zspage_chain_size()`, `zs_malloc()`, `zs_free()`, `find_get_zspage()`,
//! `get_fullness_group()`, `zs_huge_class_size()` (mm/zsmalloc.c, 6.12).
//! Since/until: so since 6.3; before, zspages had at most 4 pages and four groups of fullness, here those of 6.12.
//! Abstracted: a zspage that leaves the midst of its list leaves its place to the newest of the list; the CPU time is part of
//! compression.
//! Omitted: compaction of classes and the shrinker that asks for it, migration of zspages' pages, their slab memory.

use smallvec::SmallVec;
use units::{Gfp, Order, PAGE_SIZE, Pfn};

use crate::stat::ZoneStat;
use crate::swap::PoolId;
use crate::{AllocRequest, Env, Kind, Mm, Violation};

/// Bytes between two size classes (`ZS_SIZE_CLASS_DELTA`), and the size of the first (`ZS_MIN_ALLOC_SIZE`).
const CLASS_DELTA: u32 = 16;
const CLASS_MIN: u32 = 32;
/// Bytes that a handle takes beside its object (`ZS_HANDLE_SIZE`).
const HANDLE: u32 = 8;
/// Pages of a zspage at most (`CONFIG_ZSMALLOC_CHAIN_SIZE`).
const CHAIN_MAX: u32 = 8;
/// Groups of zspages that have room and objects: one for each tenth.
const GROUPS: usize = 10;
const PAGE: u32 = PAGE_SIZE as u32;

/// Pages of a zspage.
type ZsFrames = SmallVec<[Pfn; CHAIN_MAX as usize]>;

/// A zspage of a pool, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ZsPageId(u32);

/// Objects of nearly one size (`struct size_class`).
#[derive(Clone, Debug)]
struct SizeClass {
    size: u32,
    /// Pages of a zspage.
    chain: u32,
    /// Objects of a zspage.
    objects: u32,
    /// zspages with room, by how full they are; the newest last.
    groups: [Vec<u32>; GROUPS],
}

/// Some pages that objects lie in (`struct zspage`).
#[derive(Clone, Debug)]
struct ZsPage {
    class: u8,
    used: u32,
    /// Its place in its group's list.
    at: u32,
    frames: ZsFrames,
}

/// A pool (`struct zs_pool`).
#[derive(Clone, Debug)]
pub struct ZsPool {
    classes: Vec<SizeClass>,
    /// Class of each multiple of [`CLASS_DELTA`] from [`CLASS_MIN`] on.
    by_size: Vec<u8>,
    zspages: Vec<ZsPage>,
    unused: Vec<u32>,
    pages: u64,
    objects: u64,
}

/// Pages of a zspage of objects of this size that waste least of the last page.
fn chain_size(size: u32) -> u32 {
    if size.is_power_of_two() {
        return 1;
    }
    let waste = |chain: &u32| chain * PAGE % size;
    (1..=CHAIN_MAX).min_by_key(waste).unwrap_or(1)
}

impl Default for ZsPool {
    fn default() -> ZsPool {
        let mut classes: Vec<SizeClass> = Vec::new();
        let mut by_size = Vec::new();
        for size in (0..=(PAGE - CLASS_MIN) / CLASS_DELTA).rev().map(|n| CLASS_MIN + n * CLASS_DELTA) {
            let chain = chain_size(size);
            let objects = chain * PAGE / size;
            if classes.last().is_none_or(|last| (last.chain, last.objects) != (chain, objects)) {
                classes.push(SizeClass { size, chain, objects, groups: Default::default() });
            }
            by_size.push(classes.len() as u8 - 1);
        }
        by_size.reverse();
        ZsPool { classes, by_size, zspages: Vec::new(), unused: Vec::new(), pages: 0, objects: 0 }
    }
}

impl ZsPool {
    /// Size in bytes from which on an object takes a page of its own (`zs_huge_class_size()`).
    pub(crate) fn huge_size(&self) -> u32 {
        let normal = self.classes.iter().find(|class| class.chain != 1 && class.objects != 1);
        normal.map_or(PAGE, |class| class.size - (HANDLE - 1))
    }

    /// Pages that it has taken (`zs_get_total_pages()`).
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Objects in it.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    fn class_of(&self, bytes: u32) -> u8 {
        let size = (bytes + HANDLE).clamp(CLASS_MIN, PAGE);
        self.by_size[(size - CLASS_MIN).div_ceil(CLASS_DELTA) as usize]
    }

    /// The list that a zspage belongs on; `None` if it is full or empty.
    fn group(&self, zspage: u32) -> Option<usize> {
        let ZsPage { class, used, .. } = self.zspages[zspage as usize];
        let objects = self.classes[usize::from(class)].objects;
        (used > 0 && used < objects).then(|| (100 * used / objects / 10) as usize)
    }

    fn unlist(&mut self, zspage: u32) {
        let Some(group) = self.group(zspage) else { return };
        let ZsPage { class, at, .. } = self.zspages[zspage as usize];
        let list = &mut self.classes[usize::from(class)].groups[group];
        list.swap_remove(at as usize);
        if let Some(&moved) = list.get(at as usize) {
            self.zspages[moved as usize].at = at;
        }
    }

    fn list(&mut self, zspage: u32) {
        let Some(group) = self.group(zspage) else { return };
        let class = self.zspages[zspage as usize].class;
        let list = &mut self.classes[usize::from(class)].groups[group];
        self.zspages[zspage as usize].at = list.len() as u32;
        list.push(zspage);
    }

    /// Takes a place in the fullest zspage with room.
    fn take(&mut self, class: u8) -> Option<ZsPageId> {
        let zspage = self.classes[usize::from(class)].groups.iter().rev().find_map(|list| list.last().copied())?;
        self.take_from(zspage);
        Some(ZsPageId(zspage))
    }

    fn take_from(&mut self, zspage: u32) {
        self.unlist(zspage);
        self.zspages[zspage as usize].used += 1;
        self.list(zspage);
        self.objects += 1;
    }

    /// Makes pages a zspage and takes its first place.
    fn add(&mut self, class: u8, frames: ZsFrames) -> ZsPageId {
        self.pages += frames.len() as u64;
        let zspage = ZsPage { class, used: 0, at: 0, frames };
        let number = match self.unused.pop() {
            Some(number) => {
                self.zspages[number as usize] = zspage;
                number
            }
            None => {
                self.zspages.push(zspage);
                self.zspages.len() as u32 - 1
            }
        };
        self.take_from(number);
        ZsPageId(number)
    }

    /// Gives a place back; the pages of the zspage if it was its last object.
    fn give(&mut self, ZsPageId(zspage): ZsPageId) -> ZsFrames {
        assert!(self.zspages[zspage as usize].used > 0, "zspage {zspage} has no object");
        self.unlist(zspage);
        self.zspages[zspage as usize].used -= 1;
        self.list(zspage);
        self.objects -= 1;
        if self.zspages[zspage as usize].used > 0 {
            return ZsFrames::new();
        }
        self.unused.push(zspage);
        let frames = std::mem::take(&mut self.zspages[zspage as usize].frames);
        self.pages -= frames.len() as u64;
        frames
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.zspages.capacity() * size_of::<ZsPage>() + self.unused.capacity() * 4
    }

    /// Frames of all zspages.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Pfn> {
        self.zspages.iter().flat_map(|zspage| zspage.frames.iter().copied())
    }

    /// Checks it against a recount.
    pub(crate) fn validate(&self, violations: &mut Vec<Violation>) {
        let mut report = |what: String| violations.push(Violation { place: "zsmalloc", pfn: None, what });
        let objects: u64 = self.zspages.iter().map(|zspage| u64::from(zspage.used)).sum();
        let pages = self.frames().count() as u64;
        if (objects, pages) != (self.objects, self.pages) {
            report(format!("{} objects in {} pages, recount {objects} in {pages}", self.objects, self.pages));
        }
        for (number, zspage) in self.zspages.iter().enumerate() {
            let class = &self.classes[usize::from(zspage.class)];
            let expected = if zspage.used > 0 { class.chain } else { 0 };
            if zspage.used > class.objects || zspage.frames.len() as u32 != expected {
                report(format!("zspage {number} of {} bytes: {zspage:?}", class.size));
            }
            let listed = |group: usize| class.groups[group].get(zspage.at as usize) == Some(&(number as u32));
            if self.group(number as u32).is_some_and(|group| !listed(group)) {
                report(format!("zspage {number} is not on the list that it belongs on"));
            }
        }
    }
}

/// A place for an object that is to be had in a pool, and what it lacks.
pub(crate) enum ZsPlace {
    /// It was taken.
    Taken(ZsPageId),
    /// Its class needs a zspage of so many pages ([`Mm::zs_pages`]).
    Needs { class: u8, pages: u32 },
}

impl ZsPool {
    /// Takes a place for an object of so many bytes, if a zspage has one.
    pub(crate) fn place(&mut self, bytes: u32) -> ZsPlace {
        let class = self.class_of(bytes);
        let pages = self.classes[usize::from(class)].chain;
        self.take(class).map_or(ZsPlace::Needs { class, pages }, ZsPlace::Taken)
    }
}

impl Mm {
    /// Single pages for a zspage, without sleeping; who reclaims may use the reserves. None if there are not so many.
    fn zs_pages(&mut self, env: &Env, pages: u32, gfp: Gfp) -> Option<ZsFrames> {
        let request = AllocRequest { gfp, order: Order(0), node: env.node };
        let mut frames = ZsFrames::new();
        while frames.len() < pages as usize {
            match self.alloc_without_sleep(env, request) {
                Some(pfn) => {
                    self.frames[pfn].set_kind(Kind::Kernel, Order(0));
                    self.stat.zone_add(self.zone_of(pfn), ZoneStat::Zspages, 1);
                    frames.push(pfn);
                }
                None => {
                    self.zs_free_pages(env, &frames);
                    return None;
                }
            }
        }
        Some(frames)
    }

    fn zs_free_pages(&mut self, env: &Env, frames: &[Pfn]) {
        for &pfn in frames {
            self.frames[pfn].set_kind(Kind::Held, Order(0));
            self.stat.zone_add(self.zone_of(pfn), ZoneStat::Zspages, -1);
            self.free_pages(env, pfn, Order(0));
        }
    }

    /// A place for an object of so many bytes in a pool (`zs_malloc()`); `None` if there is no memory for it.
    pub(crate) fn zs_malloc(&mut self, env: &Env, pool: PoolId, bytes: u32, gfp: Gfp) -> Option<ZsPageId> {
        match self.swap.pool_mut(pool).place(bytes) {
            ZsPlace::Taken(zspage) => Some(zspage),
            ZsPlace::Needs { class, pages } => {
                let frames = self.zs_pages(env, pages, gfp)?;
                Some(self.swap.pool_mut(pool).add(class, frames))
            }
        }
    }

    /// Gives an object's place back (`zs_free()`).
    pub(crate) fn zs_free(&mut self, env: &Env, pool: PoolId, zspage: ZsPageId) {
        let frames = self.swap.pool_mut(pool).give(zspage);
        self.zs_free_pages(env, &frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zspage_has_as_many_pages_as_waste_least() {
        // 4096 % 3072 = 1024, 8192 % 3072 = 2048, 12288 % 3072 = 0.
        assert_eq!(chain_size(3072), 3);
        // 4096 % 1376 = 1344, 8192 % 1376 = 1312, and 32 less each time: 8 x 4096 % 1376 = 1120 is the least.
        assert_eq!(chain_size(1376), 8);
        assert_eq!(chain_size(2048), 1, "a power of two wastes nothing");
    }

    #[test]
    fn sizes_that_make_the_same_zspages_share_a_class() {
        let pool = ZsPool::default();
        // 4080: 1 x 4096 % 4080 = 16, one object a page, as of 4096; they are one class, and so on down.
        assert_eq!(pool.class_of(4000), pool.class_of(4096 - 8));
        for bytes in 1..=PAGE {
            let class = &pool.classes[usize::from(pool.class_of(bytes))];
            assert!(class.size >= (bytes + HANDLE).min(PAGE), "{bytes} bytes in {}", class.size);
            assert_eq!((class.chain, class.objects), (chain_size(class.size), class.chain * PAGE / class.size));
        }
    }

    #[test]
    fn what_hardly_compresses_takes_a_page() {
        let pool = ZsPool::default();
        let class = |bytes| &pool.classes[usize::from(pool.class_of(bytes))];
        assert_eq!(class(pool.huge_size()).objects, 1);
        assert!(class(pool.huge_size() - 1).objects > 1, "one byte less shares its zspage");
    }

    #[test]
    fn the_fullest_zspage_is_filled_first_and_an_empty_one_goes() {
        let mut pool = ZsPool::default();
        // 500 bytes and the handle: 512 a place, a power of two, so that a zspage is a page of eight.
        let class = pool.class_of(500);
        let objects = pool.classes[usize::from(class)].objects;
        assert_eq!((objects, pool.classes[usize::from(class)].chain), (8, 1));
        let pages =
            |n: u32| (0..pool.classes[usize::from(class)].chain).map(|i| Pfn(n * 100 + i)).collect::<ZsFrames>();
        let (one, two) = (pages(1), pages(2));
        let a = pool.add(class, one);
        for _ in 1..objects {
            assert_eq!(pool.take(class), Some(a));
        }
        assert_eq!(pool.take(class), None, "it is full");
        let b = pool.add(class, two);
        assert!(pool.give(a).is_empty());
        assert_eq!(pool.take(class), Some(a), "all but one of its places are taken");
        let mut violations = Vec::new();
        pool.validate(&mut violations);
        assert!(violations.is_empty(), "{violations:?}");
        assert_eq!(pool.give(b).len() as u32, pool.classes[usize::from(class)].chain);
        assert_eq!(
            (pool.objects(), pool.pages()),
            (u64::from(objects), u64::from(pool.classes[usize::from(class)].chain))
        );
    }
}
