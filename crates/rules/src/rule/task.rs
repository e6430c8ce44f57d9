//! Decisions of tasks: who runs, what a task holds.

use serde::{Deserialize, Serialize};

rule!(
    /// Which runnable task a CPU picks.
    TaskPicking {
        /// That of least virtual runtime; a sleeper that wakes soon gets the CPU (CFS): until 6.5.
        LeastRuntime,
        /// Of those that are owed time, that of the earliest deadline; what runs keeps the CPU for its slice (EEVDF): since
        /// 147f3efaa241 (6.6).
        EarliestDeadline,
    }
);
rule!(
    /// When memory counts as fully stalled (PSI) though a task has the CPU: one that reclaims.
    MemoryFull {
        /// From the last change, but a tick at most, to a tick that finds it (`psi_memstall_tick()`): 4.20 to 5.12.
        AtTicks,
        /// While it has the CPU: since 7fae6c8171d2 (5.13).
        OnCpu,
    }
);
rule!(
    /// What becomes of a task that was killed and allocates without `__GFP_FS` when memory has run out.
    DyingWithoutFs {
        /// It tries for ever, as any other without the flag: 3.19 and 4.4.
        TriesOn,
        /// It is the victim, and gets at the reserves: since 3da88fb3bacf (4.7).
        IsVictim,
    }
);
rule!(
    /// When workers that come at intervals since boot came first, as traced in guests that count instructions. A deferrable timer waits for
    /// the next tick of a CPU that sleeps, so that not only their place in the boot decides.
    BootTimers {
        /// kcompactd looks at 300 ms: Debian's 5.10, which adds nothing up at intervals; 6.1's time is named for it.
        Linux510,
        /// Statistics of cgroups are added up 153 ms after the boot began, kcompactd looks at 377 ms: Debian's 6.1.
        Linux61,
        /// At 225 and 481 ms: Debian's 6.12.
        Linux612,
    }
);
rule!(
    /// How long the kernel's own paths are, in instructions, measured in guests that count them.
    PathLength {
        /// Half of 6.12's, but three eighths for making files on ext4, and a twentieth for a pass of reclaim: 2.6.39.
        HalfButFiles,
        /// Half of 6.12's, but three quarters for finding, opening, reading and writing files, for removing them from ext4, for unmapping a page, its buffer and a
        /// run of kswapd: 4.4, which stands for 3.19.
        HalfButCalls,
        /// Three quarters of 6.12's, but a sixth for a fault, half for moving a page on the lists, looking at it in reclaim, unmapping and freeing it
        /// and its buffer and for a run of kswapd, and a twentieth for a pass of reclaim: 3.1, of whose reclaim only the sum was measured.
        ThreeQuartersButReclaim,
        /// As the table of costs says, but half of that for a fault, six tenths for freeing a page in reclaim, for its buffer, for a pass and for moving
        /// a page, and three quarters for finding one to move: 4.18 and 5.0.
        ShortFaultsAndReclaim,
        /// As the table of costs says, but three quarters for looking at a name in a directory of ext4, and fifteen sixteenths for
        /// CRC32c by tables: 5.10.
        ShortNames,
        /// As the table of costs says, which 6.12 was measured for.
        Whole,
    }
);
rule!(
    /// What a kernel stack is made of.
    KernelStack {
        /// One block of order 2: 3.15 to 4.8.
        Contiguous,
        /// Single pages mapped side by side (`CONFIG_VMAP_STACK`): since e37e43a497d5 (4.9).
        Mapped,
    }
);
rule!(
    /// What a `read()` of a pipe does that has some of the bytes that it asks for, and finds no more.
    PipeRead {
        /// It waits for more while a writer waits: until 5.4.
        WaitsForWriters,
        /// It returns: since a28c8b9db8a1 (5.5).
        Returns,
    }
);
rule!(
    /// Which page tables `nr_page_table_pages` counts.
    PageTableStat {
        /// PTE pages: 4.20 (`pgtable_page_ctor()` alone counts).
        Leaves,
        /// PTE, PMD and PUD pages: 6.12 (`pagetable_pmd_ctor()` and `pagetable_pud_ctor()` count too).
        AllButTop,
    }
);
