//! Recount of the generations.

use units::{Pfn, ZoneId};

use super::super::lru::is_file_lru;
use super::{ANON, FILE, LruGen, MAX_NR_GENS, MIN_NR_GENS};
use crate::{Frame, LruList, LruvecId, Mm, ZoneKind};

impl Mm {
    /// Checks that every page on the lists of the generations belongs there, that the sizes equal a recount, and that they
    /// add up to the active and inactive sizes. Returns the entries.
    pub(in crate::reclaim) fn validate_generations(
        &self,
        lru: LruvecId,
        note: &mut impl FnMut(Option<Pfn>, String),
    ) -> u64 {
        let Some(lrugen) = self.lruvec(lru).lru_gen.as_deref() else { return 0 };
        self.validate_seqs(lrugen, note);
        let mut counted = [[[0_u64; ZoneKind::COUNT]; 2]; MAX_NR_GENS];
        let mut entries = 0;
        let zones: Vec<ZoneId> = self.zones_of(lru).collect();
        for by_kind in &lrugen.lists {
            for (kind, by_zone) in by_kind.iter().enumerate() {
                for zone in &zones {
                    let zone_kind = self.zones[zone.index()].kind as usize;
                    let mut before = Pfn::NONE;
                    for pfn in by_zone[zone_kind].iter(&self.frames) {
                        entries += 1;
                        if entries > self.frames.len() as u64 {
                            note(Some(pfn), "a list of a generation is a loop".into());
                            return entries;
                        }
                        let frame = &self.frames[pfn];
                        if let Some(what) = self.misplaced((lru, *zone), (pfn, before), kind) {
                            note(Some(pfn), what);
                        } else if let Some(at) = frame.lru_gen() {
                            counted[at][kind][zone_kind] += u64::from(frame.nr_pages());
                        }
                        before = pfn;
                    }
                }
            }
        }
        if counted != lrugen.nr_pages {
            note(None, format!("generations of {lru:?} hold {counted:?}, not {:?}", lrugen.nr_pages));
        }
        if lrugen.enabled {
            self.validate_gen_sizes(lru, lrugen, &zones, note);
        }
        entries
    }

    fn validate_seqs(&self, lrugen: &LruGen, note: &mut impl FnMut(Option<Pfn>, String)) {
        let [anon, file] = [ANON, FILE].map(|kind| lrugen.nr_gens(kind));
        if file < MIN_NR_GENS || file > anon || anon > MAX_NR_GENS as u64 {
            note(None, format!("{anon} generations of anonymous and {file} of file pages"));
        }
    }

    /// What is wrong with a page on a list of a type and zone.
    fn misplaced(&self, (lru, zone): (LruvecId, ZoneId), (pfn, before): (Pfn, Pfn), kind: usize) -> Option<String> {
        let frame = &self.frames[pfn];
        if !frame.is_lru_kind() || !frame.has(Frame::LRU) || frame.has_any(Frame::UNEVICTABLE | Frame::ACTIVE) {
            return Some(format!("{:?} does not belong in a generation", frame.kind()));
        }
        if frame.lru_gen().is_none()
            || usize::from(is_file_lru(frame)) != kind
            || self.zone_of(pfn) != zone
            || self.lruvec_of(pfn) != lru
        {
            return Some(format!("generation {:?} is listed for type {kind} of {zone:?}", frame.lru_gen()));
        }
        (frame.prev != before).then(|| format!("previous is {:?}, not {before:?}", frame.prev))
    }

    fn validate_gen_sizes(
        &self,
        lru: LruvecId,
        lrugen: &LruGen,
        zones: &[ZoneId],
        note: &mut impl FnMut(Option<Pfn>, String),
    ) {
        for zone in zones {
            let zone_kind = self.zones[zone.index()].kind as usize;
            for (list, kind, active) in [
                (LruList::InactiveAnon, ANON, false),
                (LruList::ActiveAnon, ANON, true),
                (LruList::InactiveFile, FILE, false),
                (LruList::ActiveFile, FILE, true),
            ] {
                let of = (0..MAX_NR_GENS).filter(|at| lrugen.is_active(*at) == active);
                let pages: u64 = of.map(|at| lrugen.nr_pages[at][kind][zone_kind]).sum();
                let size = self.lruvec(lru).sizes[list as usize][zone_kind];
                if size != pages {
                    let what = format!("{list:?} of zone {}: size {size}, generations {pages}", zone.0);
                    note(None, what);
                }
            }
        }
    }
}
