//! Pages that wait in a CPU's pagevec to get onto the inactive file list, and what an access does to them.
//!
//! Rule ([`PagevecAccess`]): a page that is new in the page cache gets onto its list with 13 others of its CPU, or when somebody on that CPU
//! isolates pages of a list or has truncated pages. Until 3.10 an access in between marks it referenced, however many there are: what is used for a
//! short time only, as blocks of inodes are while a tree is removed, stays inactive and does not push out what is active.
//! Source: `mark_page_accessed()`, `__lru_cache_add()`, `lru_add_drain()`, `__pagevec_release()` (mm/swap.c), `shrink_inactive_list()`,
//! `shrink_active_list()` (mm/vmscan.c), 2.6.39 and 3.1.
//! Since/until: [`PagevecAccess`]; nothing is kept where accesses activate.
//! Abstracted: a page is on its list meanwhile, and may be freed; what its frame holds next waits in its place. Omitted: drains when a mapping or a process ends, and by
//! who writes pages back.

use rules::PagevecAccess;
use units::{CpuId, Pfn};

use crate::{Env, LruList, Mm};

/// Pages in a pagevec (`PAGEVEC_SIZE`).
pub(super) const PAGEVEC: usize = 14;

/// The pagevec of each CPU that pages of files wait in.
#[derive(Debug, Default)]
pub(super) struct Pagevecs(Vec<Vec<Pfn>>);

impl Pagevecs {
    /// A page comes in; the last that there is room for takes all of them onto their list.
    fn add(&mut self, cpu: CpuId, pfn: Pfn) {
        let cpu = usize::from(cpu.0);
        if self.0.len() <= cpu {
            self.0.resize(cpu + 1, Vec::with_capacity(PAGEVEC));
        }
        self.0[cpu].push(pfn);
        if self.0[cpu].len() == PAGEVEC {
            self.0[cpu].clear();
        }
    }

    fn drain(&mut self, cpu: CpuId) {
        if let Some(pages) = self.0.get_mut(usize::from(cpu.0)) {
            pages.clear();
        }
    }

    /// Whether a page waits in any CPU's.
    fn holds(&self, pfn: Pfn) -> bool {
        self.0.iter().any(|pages| pages.contains(&pfn))
    }
}

impl Mm {
    /// A page was put on a list.
    pub(super) fn pagevec_add(&mut self, env: &Env, pfn: Pfn, list: LruList) {
        if self.rules.pagevec_access == PagevecAccess::Marks && list == LruList::InactiveFile {
            self.reclaim.pagevecs.add(env.cpu, pfn);
        }
    }

    /// What waits on a CPU gets onto its list (`lru_add_drain()`).
    pub(crate) fn lru_add_drain(&mut self, env: &Env) {
        self.reclaim.pagevecs.drain(env.cpu);
    }

    /// Whether a page waits where no access activates it.
    pub(super) fn waits_in_pagevec(&self, pfn: Pfn) -> bool {
        self.rules.pagevec_access == PagevecAccess::Marks && self.reclaim.pagevecs.holds(pfn)
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;

    use super::super::fixture::{Machine, rules_4_20};
    use super::*;
    use crate::{Frame, Kind};

    /// Whether page `a` is active after three accesses, with so many pages added after it, and then `drain`.
    fn is_activated(rule: PagevecAccess, added: usize, drain: impl Fn(&mut Machine)) -> bool {
        let mut m = Machine::new(Rules { pagevec_access: rule, ..rules_4_20() });
        m.add("a", Kind::File, 0);
        let others: String = ('b'..='z').take(added).collect();
        m.add(&others, Kind::File, 0);
        drain(&mut m);
        let (env, pfn) = (m.env, m.names[0].1);
        (0..3).for_each(|_| m.mm.mark_page_accessed(&env, pfn));
        m.mm.frames[pfn].has(Frame::ACTIVE)
    }

    #[test]
    fn a_page_cannot_become_active_until_its_pagevec_is_full() {
        assert!(!is_activated(PagevecAccess::Marks, PAGEVEC - 2, |_| ()));
        assert!(is_activated(PagevecAccess::Marks, PAGEVEC - 1, |_| ()));
        assert!(is_activated(PagevecAccess::Activates, 0, |_| ()));
    }

    #[test]
    fn a_drain_on_its_cpu_lets_it() {
        let drain_on = |cpu| {
            move |m: &mut Machine| {
                let env = Env { cpu: CpuId(cpu), ..m.env };
                m.mm.lru_add_drain(&env);
            }
        };
        assert!(is_activated(PagevecAccess::Marks, 0, drain_on(0)));
        assert!(!is_activated(PagevecAccess::Marks, 0, drain_on(1)));
    }
}
