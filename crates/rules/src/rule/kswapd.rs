//! Decisions of kswapd: what wakes it, what it is asked for, when it ends.

use serde::{Deserialize, Serialize};

rule!(
    /// Whom a request wakes that finds too little memory, where kswapd balances every zone.
    KswapdWake {
        /// A kswapd that has a zone below its low watermark: until 3.14.
        LowMark,
        /// A kswapd that has a zone which is not balanced: since 3.15.
        Unbalanced,
    }
);
rule!(
    /// When kswapd takes up what came in while it worked.
    KswapdOrders {
        /// At once, whatever came of its last run: until 2.6.39.
        AtOnce,
        /// After it has reached what it was asked for: since 215ddd6664ce (3.0).
        AfterSuccess,
    }
);
rule!(
    /// Which zones kswapd balances when it goes round again without having been asked.
    KswapdZone {
        /// The lowest zone only, and so it falls asleep though the node is short: until 5.1.
        LowestUnlessAsked,
        /// Those of its last run: since dffcac2cb88e (5.2).
        KeepPrevious,
    }
);
rule!(
    /// When kswapd has done enough.
    KswapdBalance {
        /// At order 0 when every zone passes its high watermark, above when zones with a quarter of the memory do; it also
        /// compacts: 2.6.39 to 4.7.
        EveryZone,
        /// When any zone does: since 1d82de618ddd (4.8).
        AnyZone,
    }
);
rule!(
    /// How a run of kswapd over every zone ends.
    KswapdRun {
        /// It goes through the priorities over and over until the node is balanced, giving up the order where nothing comes
        /// of that; slabs are shrunk for every zone that it looks at: 2.6.39.
        AgainWithSlab,
        /// The same; slabs are shrunk for the zones that it scans: d7868dae893c (3.0) to 3.10.
        Again,
        /// It goes through them once: since b8e83b942a16 (3.11).
        Once,
    }
);
rule!(
    /// When kswapd, having balanced for an order above 0, may sleep.
    KswapdSleep {
        /// While zones with a quarter of the memory are not balanced: the missing negation of 1741c8775715, 2.6.38 to
        /// 2.6.39-rc7.
        UnlessBalanced,
        /// Once they are: since afc7e326a3f5 (2.6.39).
        IfBalanced,
        /// Then, and at any order once its time on the CPU is over: patch 4 of the SLUB series of May 2011, replaced by a
        /// point of rescheduling in `shrink_slab()` (f06590bd718e).
        IfBalancedOrPreempted,
    }
);
