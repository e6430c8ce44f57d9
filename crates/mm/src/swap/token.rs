//! The swap token: of several processes that thrash, one is spared and gets on.
//!
//! Rule ([`rules::SwapToken`]): a fault that reads from swap contends for the token before it does. If nobody has it, it is taken. The
//! holder gains 2 of priority with each of its faults. Another process gains 1 if fewer faults of all lie between its last
//! two than between the two before, and loses 1 otherwise; above the holder's priority it takes the token. Who takes it gains 2.
//! Reclaimers of other processes count a page as referenced once more for each time that the holder maps it, while a thread of
//! the holder is in a page fault (`mmap_sem` is held). A reclaimer at priority 0 takes the token away, and so does the holder's end.
//! Source: `grab_swap_token()`, `disable_swap_token()`, `__put_swap_token()` (mm/thrash.c), `page_referenced_one()` (mm/rmap.c), `do_swap_page()`
//! (mm/memory.c), `do_try_to_free_pages()`, `balance_pgdat()` (mm/vmscan.c); 2.6.39, 3.1.
//! Since/until: since 3.0 the holder's priority halves with every 256 faults of all that pass without a new holder; e709ffd6169c (3.5)
//! removed the token. Since d065bd810b6d (2.6.37) a fault lets `mmap_sem` go while it waits for its page to be read, so that the token helps
//! whose fault waits for memory, for a file system or for the dirty limit.
//! Abstracted: `mmap_sem` counts as held while a fault sleeps; threads that do not sleep in a fault are none of it.
//! Omitted: other holders of `mmap_sem` (`mmap()`, khugepaged), a second wait for the same page, which keeps it; tokens of
//! memory cgroups (3.0), its tracepoints; a child's `faultstamp`, which is its parent's.

use rules::SwapToken;
use units::{Pfn, SpaceId};

use crate::{Env, Frame, Kind, Mm};

/// Faults of all processes after which the holder's priority halves (`TOKEN_AGING_INTERVAL`).
const AGING_INTERVAL: u32 = 0xff;

/// The token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Token {
    holder: Option<SpaceId>,
    /// Faults that contended for it (`global_faults`).
    faults: u32,
    /// How many those were when the holder's priority was halved last, or a new one took it (`last_aging`).
    aged: u32,
}

/// What a space has to say for itself when it contends for the token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TokenClaim {
    /// `token_priority`.
    priority: u32,
    /// Faults of all processes at its last one (`faultstamp`).
    stamp: u32,
    /// Faults of all processes between its last two (`last_interval`).
    interval: u32,
}

/// Who has the token when a fault contends for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holder {
    Nobody,
    /// Who contends.
    Itself,
    /// Another space, of this priority.
    Other(u32),
}

/// Whether a claim takes the token after so many faults of others, and its priority then.
fn contend(claim: TokenClaim, interval: u32, holder: Holder) -> (bool, u32) {
    let (priority, takes) = match holder {
        Holder::Nobody => (claim.priority, true),
        Holder::Itself => return (false, claim.priority + 2),
        Holder::Other(theirs) => {
            let closer = interval < claim.interval;
            let priority = if closer { claim.priority + 1 } else { claim.priority.saturating_sub(1) };
            (priority, priority > theirs)
        }
    };
    (takes, priority + if takes { 2 } else { 0 })
}

impl Mm {
    /// A fault of a space is about to read from swap (`grab_swap_token()`).
    pub(crate) fn grab_swap_token(&mut self, space: SpaceId) {
        if self.rules.swap_token == SwapToken::None {
            return;
        }
        let token = &mut self.swap.token;
        token.faults = token.faults.wrapping_add(1);
        let now = token.faults;
        if let Some(holder) = token.holder
            && self.rules.swap_token == SwapToken::Ages
            && now.wrapping_sub(token.aged) > AGING_INTERVAL
        {
            self.spaces[holder].token.priority /= 2;
            token.aged = now;
        }
        let holder = match token.holder {
            None => Holder::Nobody,
            Some(holder) if holder == space => Holder::Itself,
            Some(holder) => Holder::Other(self.spaces[holder].token.priority),
        };
        let claim = self.spaces[space].token;
        let interval = now.wrapping_sub(claim.stamp);
        let (takes, priority) = contend(claim, interval, holder);
        if takes {
            token.holder = Some(space);
            token.aged = now;
        }
        self.spaces[space].token = TokenClaim { priority, stamp: now, interval };
    }

    /// Reclaim is at its highest priority: nobody is spared any more (`disable_swap_token()`).
    pub(crate) fn disable_swap_token(&mut self) {
        self.swap.token.holder = None;
    }

    /// A space ends (`put_swap_token()`).
    pub(crate) fn put_swap_token(&mut self, space: SpaceId) {
        if self.swap.token.holder == Some(space) {
            self.swap.token.holder = None;
        }
    }

    /// The space that has the swap token.
    pub fn swap_token_holder(&self) -> Option<SpaceId> {
        self.swap.token.holder
    }

    /// A thread of a space begins to sleep in a page fault, with `mmap_sem` held.
    pub fn fault_sleeps(&mut self, space: SpaceId) {
        self.spaces[space].faults_asleep += 1;
    }

    /// It goes on; to be called once for each [`Mm::fault_sleeps`].
    pub fn fault_goes_on(&mut self, space: SpaceId) {
        let asleep = &mut self.spaces[space].faults_asleep;
        *asleep = asleep.checked_sub(1).expect("a fault goes on that slept");
    }

    /// References that a mapped page has because of the token.
    #[inline]
    pub(crate) fn token_references(&self, env: &Env, pfn: Pfn) -> u32 {
        match self.swap.token.holder {
            Some(holder) if env.task.space != Some(holder) && self.spaces[holder].faults_asleep > 0 => {
                self.mappings_in(holder, pfn)
            }
            _ => 0,
        }
    }

    /// How often a space maps a page.
    fn mappings_in(&self, space: SpaceId, pfn: Pfn) -> u32 {
        let frame = &self.frames[pfn];
        match frame.kind() {
            _ if !frame.has(Frame::MAPPED) => 0,
            Kind::Anon => u32::from(self.anon_home(pfn).0 == space),
            Kind::File => self.mappings_of(pfn).iter().filter(|(owner, _)| *owner == space).count() as u32,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;
    use units::{Bytes, Gfp};

    use super::*;
    use crate::anon::TouchStop;
    use crate::anon::testing::{Machine, rules_4_20};
    use crate::vfs::FsSpec;

    fn machine(swap_token: SwapToken) -> Machine {
        Machine::new(Rules { swap_token, ..rules_4_20() })
    }

    fn claim(priority: u32, interval: u32) -> TokenClaim {
        TokenClaim { priority, stamp: 0, interval }
    }

    #[test]
    fn who_faults_in_a_shorter_interval_gains_and_takes_the_token_above_the_holder() {
        assert_eq!(contend(claim(0, 0), 9, Holder::Nobody), (true, 2));
        assert_eq!(contend(claim(5, 0), 9, Holder::Itself), (false, 7));
        // Shorter than its last interval by one, and no shorter.
        assert_eq!(contend(claim(5, 10), 9, Holder::Other(6)), (false, 6), "as high as the holder");
        assert_eq!(contend(claim(5, 10), 9, Holder::Other(5)), (true, 5 + 1 + 2));
        assert_eq!(contend(claim(5, 9), 9, Holder::Other(5)), (false, 4));
        assert_eq!(contend(claim(5, 9), 9, Holder::Other(3)), (true, 4 + 2), "it is above the holder all the same");
        assert_eq!(contend(claim(0, 9), 9, Holder::Other(0)), (false, 0), "it does not fall below 0");
    }

    #[test]
    fn the_holders_priority_halves_after_256_faults_since_3_0() {
        for (rule, halved) in [(SwapToken::Kept, 1), (SwapToken::Ages, 2)] {
            let mut m = machine(rule);
            let (a, b) = (m.space, m.mm.space_create());
            for _ in 0..10 {
                m.mm.grab_swap_token(a);
            }
            // The first fault took it, which began the interval. `b` never comes sooner than before, and so gains nothing.
            let priority = |m: &Machine| m.mm.spaces[a].token.priority;
            for _ in 10..1 + AGING_INTERVAL {
                m.mm.grab_swap_token(b);
            }
            assert_eq!((m.mm.swap.token.faults, priority(&m)), (1 + AGING_INTERVAL, 20));
            m.mm.grab_swap_token(b);
            assert_eq!(priority(&m), 20 / halved);
            assert_eq!(m.mm.swap.token.holder, Some(a));
            m.mm.space_exit(&m.env, b);
            m.end(0);
        }
    }

    #[test]
    fn it_goes_with_its_holder_or_when_reclaim_is_in_trouble() {
        let mut m = machine(SwapToken::Ages);
        let other = m.mm.space_create();
        m.mm.grab_swap_token(other);
        m.mm.put_swap_token(m.space);
        assert_eq!(m.mm.swap.token.holder, Some(other), "the end of another one is no matter");
        m.mm.space_exit(&m.env, other);
        assert_eq!(m.mm.swap.token.holder, None);
        m.mm.grab_swap_token(m.space);
        m.mm.disable_swap_token();
        assert_eq!(m.mm.swap.token.holder, None);
        let mut without = machine(SwapToken::None);
        without.mm.grab_swap_token(without.space);
        assert_eq!(without.mm.swap.token, Token::default());
    }

    #[test]
    fn a_fault_contends_once_before_it_reads_and_not_for_what_the_swap_cache_has() {
        let mut m = machine(SwapToken::Ages);
        m.add_swap(4096, false);
        let vpn = m.mmap(1);
        m.touch(vpn, 1, true);
        let pfn = m.pfn(vpn);
        assert!(m.swap_out(vpn));
        let TouchStop::Done = m.go_on(&mut m.begin(vpn, 1, false), None) else { panic!("it is in the swap cache") };
        assert_eq!(m.mm.swap.token.faults, 0);
        m.finish_io();
        assert!(m.swap_out(vpn));
        m.finish_io();
        m.drop_cached(pfn);
        let mut touch = m.begin(vpn, 1, false);
        for _ in 0..2 {
            assert!(matches!(m.go_on(&mut touch, None), TouchStop::Wait(_)));
            assert_eq!((m.mm.swap_token_holder(), m.mm.swap.token.faults), (Some(m.space), 1));
        }
    }

    #[test]
    fn its_pages_are_referenced_for_others_while_a_thread_of_it_is_in_a_fault() {
        let mut m = machine(SwapToken::Ages);
        let vpn = m.mmap(1);
        m.touch(vpn, 1, true);
        let (pfn, env) = (m.pfn(vpn), m.env);
        let references = |m: &Machine, env: &Env| m.mm.token_references(env, pfn);
        m.mm.fault_sleeps(m.space);
        assert_eq!(references(&m, &env), 0, "it does not hold the token");
        m.mm.grab_swap_token(m.space);
        assert_eq!(references(&m, &env), 1);
        let mut own = env;
        own.task.space = Some(m.space);
        assert_eq!(references(&m, &own), 0, "it takes its own pages");
        m.mm.fault_goes_on(m.space);
        assert_eq!(references(&m, &env), 0, "no thread is in a fault");
    }

    #[test]
    fn a_file_page_counts_for_each_time_that_the_holder_maps_it() {
        let mut m = machine(SwapToken::Ages);
        let (env, space) = (m.env, m.space);
        let fs = m.mm.vfs_mkfs(FsSpec::xfs(3, Bytes::gib(4)));
        let root = m.mm.vfs_root(fs);
        let file = m.mm.vfs_create(&env, root).expect("memory is plentiful").file;
        let request = crate::AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: units::Order(0), node: env.node };
        let pfn = m.mm.alloc_pages(&env, request).expect("memory is plentiful");
        m.mm.pagecache_insert(&env, pfn, file, 0).expect("memory is plentiful");
        m.mm.frames[pfn].set(Frame::UPTODATE);
        m.mm.set_inode_size_pages(&env, file, 1);
        m.mm.grab_swap_token(space);
        m.mm.fault_sleeps(space);
        let other = m.mm.space_create();
        for (owner, references) in [(space, 1), (other, 1), (space, 2)] {
            let vpn = m.mm.mmap_file(owner, file, 1, crate::pagecache::Readahead::default());
            m.mm.touch(&env, &mut crate::anon::Touch::new(owner, vpn, 1, false, 1 << 60), None);
            assert_eq!(m.mm.token_references(&env, pfn), references);
        }
    }
}
