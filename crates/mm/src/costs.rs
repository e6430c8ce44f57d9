//! CPU costs in nanoseconds: one table for all studies, each figure with its source.

use rules::PathLength;
use units::Order;

macro_rules! costs {
    ($($(#[doc = $doc:literal])* $field:ident = $default:literal;)*) => {
        /// CPU time of the elementary operations, in ns at the reference speed.
        #[derive(Clone, PartialEq, Debug)]
        pub struct Costs { $($(#[doc = $doc])* pub $field: u64,)* }

        impl Default for Costs {
            fn default() -> Costs { Costs { $($field: $default,)* } }
        }

        impl Costs {
            /// Name, default and source of each cost.
            pub const TABLE: &[(&'static str, u64, &'static str)] =
                &[$((stringify!($field), $default, concat!($($doc,)*)),)*];

            /// The costs on a machine `speed` times as fast as the reference.
            #[must_use]
            pub fn at_speed(&self, speed: f64) -> Costs {
                Costs { $($field: (self.$field as f64 / speed).round() as u64,)* }
            }
        }
    };
}

impl Costs {
    /// The costs of a kernel with such paths. Moving and compressing memory, looking for free pages, and what goes from CPU to CPU, takes what it takes.
    #[must_use]
    pub fn with_paths(self, rule: PathLength) -> Costs {
        match rule {
            PathLength::Whole => self,
            PathLength::ShortNames => self.with_short_names(),
            PathLength::ShortFaultsAndReclaim => self.with_short_faults_and_reclaim(),
            PathLength::ThreeQuartersButReclaim => self.clone().shortened(4.0 / 3.0).with_reclaim_of(&self),
            PathLength::HalfButFiles => self.clone().shortened(2.0).with_files_of(&self),
            PathLength::HalfButCalls => self.clone().shortened(2.0).with_calls_of(self),
        }
    }

    /// The costs where all paths are shorter by this factor.
    fn shortened(self, speed: f64) -> Costs {
        Costs {
            zero_page: self.zero_page,
            zero_huge: self.zero_huge,
            copy_page: self.copy_page,
            memset_page: self.memset_page,
            tlb_flush: self.tlb_flush,
            tlb_flush_cpu: self.tlb_flush_cpu,
            tlb_flush_irq: self.tlb_flush_irq,
            compress_lzo: self.compress_lzo,
            decompress_lzo: self.decompress_lzo,
            compress_lz4: self.compress_lz4,
            decompress_lz4: self.decompress_lz4,
            compress_zstd: self.compress_zstd,
            decompress_zstd: self.decompress_zstd,
            compact_scan_free: self.compact_scan_free,
            lru_locked: self.lru_locked,
            lock_handoff: self.lock_handoff,
            rstat_flush: self.rstat_flush,
            crc32c_kib: self.crc32c_kib,
            crc32c_kib_tables: self.crc32c_kib_tables,
            random_number: self.random_number,
            random_number_extracted: self.random_number_extracted,
            program_call: self.program_call,
            program_name: self.program_name,
            ..self.at_speed(speed)
        }
    }

    /// Three quarters for looking at a name, and fifteen sixteenths for CRC32c by tables.
    fn with_short_names(self) -> Costs {
        Costs { search_name: self.search_name * 3 / 4, crc32c_kib_tables: self.crc32c_kib_tables * 15 / 16, ..self }
    }

    /// Half of that for a fault, six tenths for freeing a page in reclaim, for its buffer, for a pass and for moving a page, and three quarters for
    /// finding one to move.
    fn with_short_faults_and_reclaim(self) -> Costs {
        let six_tenths = |cost: u64| cost * 6 / 10;
        let three_quarters = |cost: u64| cost * 3 / 4;
        Costs {
            fault: self.fault / 2,
            reclaim_page: six_tenths(self.reclaim_page),
            free_buffer: six_tenths(self.free_buffer),
            reclaim_pass: six_tenths(self.reclaim_pass),
            migrate_page: six_tenths(self.migrate_page),
            compact_scan: three_quarters(self.compact_scan),
            compact_isolate: three_quarters(self.compact_isolate),
            ..self
        }
    }

    /// The same, but a sixth of what a fault takes in `whole` paths, half of what it takes to move a page on the lists, to look at it, to unmap and
    /// free it and its buffer, and of a run of kswapd, and a twentieth of a pass of reclaim.
    fn with_reclaim_of(self, whole: &Costs) -> Costs {
        let half = whole.clone().shortened(2.0);
        Costs {
            fault: whole.fault / 6,
            scan_page: half.scan_page,
            lru_move: half.lru_move,
            rmap_page: half.rmap_page,
            unmap_page: half.unmap_page,
            reclaim_page: half.reclaim_page,
            free_buffer: half.free_buffer,
            kswapd_run: half.kswapd_run,
            reclaim_pass: whole.reclaim_pass / 20,
            ..self
        }
    }

    /// The same, but three eighths of what making a file takes in `whole` paths, and a twentieth of a pass of reclaim.
    fn with_files_of(self, whole: &Costs) -> Costs {
        Costs { create_ext4: whole.create_ext4 * 3 / 8, reclaim_pass: whole.reclaim_pass / 20, ..self }
    }

    /// The same, but three quarters of what finding, opening, reading and writing files takes in `whole` paths, of unmapping a page, its buffer and
    /// a run of kswapd, and of removing them.
    fn with_calls_of(self, whole: Costs) -> Costs {
        let calls = whole.shortened(4.0 / 3.0);
        Costs {
            syscall: calls.syscall,
            open_file: calls.open_file,
            open_close: calls.open_close,
            read_call: calls.read_call,
            write_call: calls.write_call,
            cache_lookup: calls.cache_lookup,
            write_ext4: calls.write_ext4,
            extend_ext4: calls.extend_ext4,
            delayed_handle: calls.delayed_handle,
            search_name: calls.search_name,
            rmap_page: calls.rmap_page,
            unmap_page: calls.unmap_page,
            free_buffer: calls.free_buffer,
            kswapd_run: calls.kswapd_run,
            unlink_ext4: calls.unlink_ext4,
            ..self
        }
    }

    /// The costs where CRC32c is computed by tables.
    #[must_use]
    pub fn with_crc32c_by_tables(self) -> Costs {
        Costs { crc32c_kib: self.crc32c_kib_tables, ..self }
    }

    /// The costs where each random number is drawn from the pool of entropy.
    #[must_use]
    pub fn with_extracted_random(self) -> Costs {
        Costs { random_number: self.random_number_extracted, ..self }
    }

    /// The costs where copying or clearing 4 KiB takes `ns`, whatever the speed: a guest that counts instructions has no caches.
    #[must_use]
    pub fn with_page_ns(self, ns: u64) -> Costs {
        Costs { copy_page: ns, zero_page: ns, zero_huge: ns * u64::from(Order(9).pages()), ..self }
    }
}

/// What compressing and decompressing 4 KiB takes, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompressCosts {
    /// By LZO.
    pub lzo: [u64; 2],
    /// By LZ4.
    pub lz4: [u64; 2],
    /// By Zstandard.
    pub zstd: [u64; 2],
}

impl Costs {
    /// The costs where compressing takes so long, whatever the speed.
    #[must_use]
    pub fn with_compress_ns(self, ns: CompressCosts) -> Costs {
        let ([compress_lzo, decompress_lzo], [compress_lz4, decompress_lz4]) = (ns.lzo, ns.lz4);
        let [compress_zstd, decompress_zstd] = ns.zstd;
        Costs { compress_lzo, decompress_lzo, compress_lz4, decompress_lz4, compress_zstd, decompress_zstd, ..self }
    }
}

costs! {
    /// System call entry and exit. Source: lmbench-class null call with mitigations, about 100 to 200 ns.
    syscall = 150;
    /// Page fault: entry, VMA and page table, accounting, return; without allocation. Calibration: guests of QEMU that count instructions
    /// (6.12, wbstrm with 64 and 128 MiB of anonymous memory) take 5,480 for a page from its fault to the end of its process, of which
    /// zeroing 512, allocation, lists and freeing as here 1,120.
    fault = 960;
    /// Entering a cached page of a file in a page table beside the one that faulted. Calibration: the same guests take 970 for each page
    /// of a cached file that is mapped, read and unmapped, of which a sixteenth of a fault and its end take 640.
    map_page = 80;
    /// Order-0 allocation through a per-CPU list. Source: Brouer's page_bench, about 200 cycles.
    alloc_pcp = 60;
    /// Taking or returning one page under the zone lock in a bulk refill. Source: page_bench bulk, guess per page.
    alloc_buddy = 40;
    /// Walking one pageblock to take it for another type: 512 struct pages, 32 KiB. Source: 10 GB/s, cold.
    steal_block = 3_000;
    /// One get_page_from_freelist walk with watermark check that fails. Guess.
    alloc_walk = 80;
    /// Zeroing 4 KiB. Source: memset at 10 GB/s in cache, about 400 ns cold.
    zero_page = 250;
    /// Zeroing 2 MiB. Source: 170 us per huge fault measured on a Zen 4 guest is the upper end; 10 GB/s gives 105.
    zero_huge = 105_000;
    /// Copying 4 KiB to or from user space. Source: 14 GB/s memcpy, with cache misses.
    copy_page = 450;
    /// Writing 4 KiB of mapped memory (the workload's own memset). Source: memset at 20 GB/s in L2/L3.
    memset_page = 180;
    /// What a program does for a system call by itself, whichever program it is. Calibration: guests of QEMU that count instructions (6.12, thpfio3 with files
    /// of 4 to 200 KiB) spend 250 in user mode for each `read()` and `write()`; four instructions are taken for a ns.
    program_call = 63;
    /// What it does for one with a path besides: putting the path together. Calibration: the same (untar2) spend 160 ms in user mode for
    /// 60,000 calls with a path and 40,000 without.
    program_name = 560;
    /// A `read()` beside its entry and its pages: file position, access time, iterators. Calibration: guests of QEMU that count
    /// instructions (6.12, fio, cached pages in calls of 4, 16 and 64 KiB) take 1,570 for a call and 820 for each page; four
    /// instructions are taken for a ns.
    read_call = 240;
    /// A `write()` beside its entry and its pages: locks, times, limits. Calibration: the same guests take 3,180 for a call that writes one
    /// dirty page again, and 2,120 for each page of a large one.
    write_call = 115;
    /// Reading a page into the cache, beside its allocation and insertion: readahead's loop, its block, its place in a bio, its end. Calibration: the same
    /// guests take 4,950 more for a page that is not cached, of which 512 zero it, 1,020 copy it and 1,160 are allocation and
    /// insertion.
    read_page = 550;
    /// Beginning a bio of such pages: readahead's decision, the blocks of the run. Calibration: the same guests take 4,000 for each run of a random
    /// read that misses, beside the call and its pages; `copied_bio` and the driver's own 400 are part of that.
    read_bio = 400;
    /// Page-cache lookup. Calibration: the same guests' 820 for a page, less its copy of 512.
    cache_lookup = 80;
    /// Inserting into or deleting from the page cache, with accounting. Guess.
    cache_insert = 150;
    /// Adding to or deleting from an LRU list, batched by pagevecs. Guess.
    lru_move = 40;
    /// Looking at one page in isolation or in shrinking, without further work. Source: about 100 to 200 ns per scanned page.
    scan_page = 100;
    /// Reverse-mapping walk of one mapped page. Calibration: kswapd of guests that count instructions (a file of 700 MiB read by its mapping through 384 MiB,
    /// traced by batch) takes 1,740 (6.1) and 1,360 (6.12) more for each page that is mapped and not accessed than for one that is not
    /// mapped, wbstrm with stores 1,740 and 1,800; this and `unmap_page` are a guess within 1,640.
    rmap_page = 170;
    /// Finding the accessed bit in that walk, and keeping the page for it. Calibration: kswapd takes 1,540 (6.1, wbstrm) for each anonymous page that it keeps,
    /// of which all else here is 1,220.
    rmap_young = 80;
    /// Looking at one page table entry in a walk, and at the page that it maps. Calibration: an aging of a guest of QEMU that counts instructions
    /// (6.12, wbstrm, traced) that finds 64 tables full and no accessed bit takes 1,941,000.
    walk_pte = 15;
    /// Finding one page table in a walk. Guess: a line of the level above, read in order, and one of the table.
    walk_table = 50;
    /// Taking the accessed bit of an entry, and its page to the youngest generation. Calibration: the aging before that one found all bits set and
    /// took 6,726,000.
    promote_page = 36;
    /// Unmapping one page, without the TLBs of other CPUs. Calibration: see `rmap_page`.
    unmap_page = 240;
    /// Having other CPUs flush their TLBs and waiting for them, beside what each of them adds. Source: an IPI and its answer take 1 to
    /// 1.5 us on Xeons of 2.4 GHz, of half the reference speed.
    tlb_flush = 500;
    /// What each of those CPUs adds to the wait. Source: 6 us for 16 CPUs on such a machine (Kumar et al., Latr, ASPLOS 2018).
    tlb_flush_cpu = 150;
    /// What an interrupt to flush the TLB takes from the CPU that it comes to, misses after it left out. Source: some 1 us on such a machine
    /// with page-table isolation; a guess within it.
    tlb_flush_irq = 500;
    /// Unmapping one page at munmap or exit, without freeing it. Guess: exit of 1 GiB takes some 50 ms, free included.
    zap_page = 100;
    /// Splitting a huge page into 512. Guess: 512 page structs, page table entries and two TLB flushes.
    split_huge = 50_000;
    /// Freeing one reclaimed page with its bookkeeping. Calibration: kswapd of guests that count instructions (a file of 700 MiB read through 384 MiB, traced by
    /// batch) takes 1,850 (6.1) and 2,100 (6.12) for each page and 170 for isolating it, of which all else here is 1,175.
    reclaim_page = 244;
    /// Having a worker run that has next to nothing to do. Calibration: such a guest (5.0, traced) takes 4,000 from the switch to one
    /// that tells of reclaim's pressure until the switch away from it.
    small_work = 1_000;
    /// Writing an anonymous page to swap beside its unmapping, its bio and its freeing: slot, swap cache, records. Calibration: guests of QEMU
    /// that count instructions (6.12, wbstrm with 192 MiB of anonymous memory, one pass, `memory-max=64MiB`, unlimited disk)
    /// take 5,800 more for each page than all other costs here explain, with either LRU.
    swap_out = 1_446;
    /// Reading a page from swap beside its fault, its bio and its allocation: swap cache, readahead, records, giving the slot back.
    /// Calibration: three passes of the same take 6,000 (classic) and 6,400 (multi-gen) more for each page.
    swap_in = 1_540;
    /// Compressing 4 KiB by LZO. Source: the table in LZ4's README, a core of 4.9 GHz of the reference's design: 670 MB/s.
    compress_lzo = 6_110;
    /// Decompressing 4 KiB of it. Source: the same: 860 MB/s.
    decompress_lzo = 4_760;
    /// Compressing 4 KiB by LZ4. Source: the same: 780 MB/s.
    compress_lz4 = 5_250;
    /// Decompressing 4 KiB of it. Source: the same: 4,970 MB/s.
    decompress_lz4 = 820;
    /// Compressing 4 KiB by Zstandard at level 1. Source: the same: 515 MB/s.
    compress_zstd = 7_950;
    /// Decompressing 4 KiB of it. Source: the same: 1,380 MB/s.
    decompress_zstd = 2_970;
    /// Looking at one frame for pages to move. Source: traced guests of 6.12 that count instructions, `compact_memory` and huge pages of faults:
    /// 43 to 62 instructions (40 in 4.18 and 5.0, 33 in 4.4).
    compact_scan = 13;
    /// Looking at one frame for free pages, taking them included. Source: the same: 17 to 23 instructions in all of them.
    compact_scan_free = 5;
    /// Isolating one page to be moved. Source: the same: 435 instructions (330 in 4.18 and 5.0, 154 in 4.4).
    compact_isolate = 109;
    /// Moving one 4 KiB page without copying it. Source: the same: 4,450 instructions with the 512 of the copy (2,850 in 4.18 and 5.0, 2,600 in 4.4).
    migrate_page = 985;
    /// A migration that fails. Source: cost model of mmtests: 14 units, where 19 are an isolated page's.
    migrate_fail = 100;
    /// Allocating or freeing one slab object from a CPU slab. Source: slab_bench, about 50 cycles.
    slab_object = 30;
    /// Shrinking one object of a cache. Guess.
    shrink_object = 300;
    /// Looking at an entry of ext4's `extent_status` in its shrinker. Calibration: `ext4_es_scan()` of kswapd in guests that count instructions (6.12)
    /// takes 22.5 ms for 66,600 entries, of which 36,700 are freed (thpfio3), and 40 ms for 80,000 and 57,600 (untar2).
    shrink_extent = 80;
    /// A bio to a driver that copies, without request and interrupt: its submission and its end. A guess within what the guests
    /// take for a run that misses (`read_bio`).
    copied_bio = 500;
    /// Submitting one bio, block layer included. Source: about 2 us on a SATA stack.
    submit_bio = 2_000;
    /// Completing one bio. Guess.
    complete_bio = 1_500;
    /// Writeback bookkeeping of one page. Guess.
    writeback_page = 150;
    /// Allocating blocks for a run of delayed pages on XFS, with its transaction. Calibration: the flusher of guests that count instructions
    /// (5.0, untar2 and thpfio3 with files of 1 to 50 pages, 576 MiB) takes 29,000 for a file of a page, of which bio and page take 6,800.
    allocate_extent = 5_550;
    /// Preparing the write of a page to the device on XFS. Calibration: the flusher of such guests (5.0, untar2 with 300 files of 64 pages) takes
    /// 3,390 for each page beside its file, of which the device's copy takes 1,690.
    writeback_xfs = 275;
    /// Ending the write of a page on XFS. Calibration: the worker behind it takes 450 for each.
    end_page_xfs = 110;
    /// Logging the size of a file whose data reached the device (XFS). Calibration: that worker takes 6,500 for each file besides.
    log_size = 1_600;
    /// Converting an unwritten extent of XFS to a written one, with its transaction, which logs the size too. Calibration: the workers of a
    /// guest that counts instructions (5.10, thpfio3, 34,000 files of 5 pages) take 809 ms for the ends of writes and for what a limit held back, of which 440 are other costs here.
    convert_extent_xfs = 2_700;
    /// What a `write()` to XFS takes for its place in the file: locks, extents. Calibration: guests that count instructions
    /// (5.0, thpfio3 with files of 1 to 50 pages, one open at a time, 576 MiB) take 5,500 to 6,000 more for each page beyond the 16th, of
    /// which 3,350 are the other costs here.
    write_xfs = 640;
    /// Reserving a block for it, where none is reserved ahead. Calibration: the same take 6,870 more for each of the first 16.
    reserve_xfs = 250;
    /// Setting a time of a file on XFS: a transaction of its own. Calibration: the same take 2,100 more for each file and tick that
    /// is written if 64 files are open.
    new_time_xfs = 540;
    /// Waking a task. Source: about 1 to 2 us for a wake-up across CPUs.
    wake_up = 1_000;
    /// Going to sleep on a futex and coming back: its queue, the switches to another task and from it. Calibration: guests of QEMU that count
    /// instructions (6.1, memcached-fio under the multi-gen LRU, `measure-s=6`) take 20,000 more for a wake-up in each direction between
    /// client and server than all other costs here explain, of which two wake-ups have 8,000.
    futex_wait = 1_500;
    /// A run of kswapd beside its passes over the node: a nap and its end. Calibration: kswapd of guests that count instructions (6.1 and 6.12, a file of
    /// 700 MiB through 384 MiB, traced) takes 7,000 for each run.
    kswapd_run = 1_750;
    /// A pass of reclaim over a node beside the pages and objects that it looks at: what is to be scanned of each list, shrinkers that have little or
    /// nothing, whether the zones are balanced. Calibration: the same take 14,000 (6.1) and 16,700 (6.12) for each pass; in 4.4 (untar2,
    /// 160 MiB), whose paths are half as long, a run with its passes takes 16,300.
    reclaim_pass = 3_800;
    /// Going to the next memory cgroup of a walk, working out what it is protected from, and finding its lists empty. Calibration: kswapd of guests of
    /// QEMU that count instructions (6.12, `squeeze` with one reader) takes 190 more for each group in a pass of the classic LRU (5.5 us after
    /// the reader's group with 2 groups, 53 with 250, 157 with 800, medians of some 2000), and 173 more before its first pages under the
    /// multi-gen LRU (46 us with 2, 63 with 100, 89 with 250, medians of some 600).
    memcg_walk = 45;
    /// Creating one file on XFS: path walk, transactions, log. Calibration: guests that count instructions (5.0, untar2, 10,000 files) take
    /// 49,300, 54,000, 56,100, 62,800 and 69,000 for making a file of a page in directories of 50, 200, 400, 1000 and 5000, the flusher's
    /// left out; the program has 3,000 of it and the page 8,000; four instructions are taken for a ns.
    create_file = 9_450;
    /// What a name in a directory of XFS takes more with a block of hashes. Calibration: the same, and removing
    /// them, which takes 60,500, 68,800, 70,700, 74,200 and 77,500.
    name_in_leaf = 2_700;
    /// The same with a tree of such blocks. Calibration: the same.
    name_in_node = 4_800;
    /// Starting and ending a process: fork, exec, exit, wait. Source: 139 us without exec measured on a Zen 4 guest;
    /// lmbench's fork and exec take two to three times its fork.
    process = 350_000;
    /// Looking a cached file up. Calibration: guests of QEMU that count instructions (6.12, untar2) take 7,300 to 8,100, of which the program has
    /// 2,500 and the entry of the call 600.
    open_file = 1_100;
    /// Removing one file on XFS. Calibration: guests that count instructions (5.0, untar2, directories of 50) take 60,500, of which the program
    /// has 2,500.
    unlink_file = 14_000;
    /// Freeing a further extent of a file that is removed on XFS: its transactions, the trees of free space. Calibration: `rm` of 12,993
    /// files of 6 extents and 22,228 of 8 takes 91,000 and 133,000 instructions more a file in guests (5.0, thpfioscale) than of
    /// one extent.
    free_extent_xfs = 4_500;
    /// Opening an existing file beside its look-up, and closing it. Calibration: guests of QEMU that count instructions (6.12, thpfio3)
    /// take 11,200 in the kernel for opening, reading and closing a cached file of 4 KiB, 9,800 of which are the other costs here.
    open_close = 350;
    /// CRC32c of 1 KiB by the CPU's instruction. Source: eight bytes in four instructions (`crc32c_intel_le_hw()`), of which the one that
    /// counts takes three cycles.
    crc32c_kib = 125;
    /// The same by tables. Source: 28 instructions for eight bytes (`crc32_body()`, disassembled from Debian's 6.12).
    crc32c_kib_tables = 896;
    /// A random number of four bytes from a generator that has been seeded. Source: a block of ChaCha, 1,282 instructions, is sixteen of them.
    random_number = 28;
    /// The same before it has been seeded, since 5.18. Calibration: guests of 6.1 whose instructions were counted by function (thpfio3 on XFS) take
    /// 7,360 for each, most of them in five rounds of BLAKE2s.
    random_number_extracted = 1_840;
    /// Creating a file on ext4, beside the names that are looked at, checksums and random numbers. Calibration: guests of QEMU that count instructions
    /// (6.12, untar2 with 10,000 files, 576 MiB) take 85,400, 93,100, 108,700, 120,600, 127,200 and 125,800 for making a file of a page in directories
    /// of 50, 100, 200, 400, 1000 and 5000; the program has 3,000 of it and the page 9,000, checksums by tables 20,800, and 1.2 random numbers 9,000; four
    /// instructions are taken for a ns.
    create_ext4 = 8_250;
    /// Looking at a name in a directory of ext4 for a new one: it must not be there, and finds its place behind others. Calibration: the same.
    search_name = 78;
    /// Beginning and ending the write of a page on ext4: journal, buffer head. Calibration: guests of QEMU that count instructions (6.12, fio)
    /// take 2,120 for each page that is written again in calls of 64 KiB, of which its copy takes 512 and its lookup 320.
    write_ext4 = 320;
    /// The same of a page behind the end: reservation of a block, the inode in the journal. Calibration: the same guests take 5,000
    /// more for each page of a new file, of which allocation, insertion and zeroing are 1,670.
    extend_ext4 = 830;
    /// Setting a time of a file on ext4, beside its checksum. Calibration: guests of QEMU that count instructions (6.12, thpfio3 with files of 50 and of
    /// 5 pages) take 1,500 and 2,800 more for each file and tick that is written if 64 files are open, of which a checksum by tables has 900.
    new_time_ext4 = 360;
    /// A handle of the journal around the write of a page, until 5.14. Calibration: such guests (4.4, thpfio3 with files of 200 KiB) take
    /// 8,100 in the kernel for each page of a new file, 5,600 of which are the other costs here, in three quarters of 6.12's paths.
    delayed_handle = 830;
    /// Allocating blocks for a run of delayed pages on ext4, with its transaction, beside checksums. Calibration: guests that count instructions
    /// (6.12, untar2 with 3000 files of a page, 600 of 16 and 300 of 64, 384 MiB, disks of 10 MiB/s) take 35,000 to 37,000 in `wb_workfn()` for each file
    /// beside its pages, of which checksums by tables have 17,200.
    allocate_ext4 = 4_590;
    /// Allocating the block of a page on ext3 as it is written, within the handle: bitmap, inode, the indirect block. Calibration: guests of 2.6.39 that count
    /// instructions (untar2 with files of 1, 8 and 32 pages) take 9,800 to 10,000 for each further page, of which 5,200 are the other costs here,
    /// in half of 6.12's paths.
    allocate_ext3 = 2_300;
    /// Preparing the write of a page to the device on ext4. Calibration: the same guests take 1,640 to 1,930 for each page there.
    writeback_ext4 = 310;
    /// Ending the write of a page on ext4. Calibration: the same guests take 900 for each page in `ext4_end_io_rsv_work()`.
    end_page_ext4 = 225;
    /// Converting an unwritten extent of ext4 to a written one, with its transaction, beside checksums. Calibration: the same guests take 9,500 for each
    /// file there, of which checksums by tables have 1,800.
    convert_ext4 = 1_927;
    /// Writing a block of metadata to the journal of ext4: checksum, copy's buffer head and bio. Calibration: the journal's thread in guests that count
    /// instructions (6.12, thpfioscale) takes 12,700 for each block of the log, of which the device's copy takes 512.
    commit_block = 3_000;
    /// Removing a file of one extent on ext4, beside checksums. Calibration: guests that count instructions (6.12, untar2) take 97,000 to 100,000, of which the
    /// program has 2,500 and checksums by tables 49,900.
    unlink_ext4 = 10_410;
    /// Taking or freeing a run of blocks on ext4: their block group's bitmap, beside its checksum. Calibration: removing files of 2 and 4 extents in guests that
    /// count instructions (6.12, thpfioscale with files of 8 and 16 KiB) takes 71,000 a file and 26,000 an extent, of which a checksum by tables has 14,600.
    change_bitmap = 2_860;
    /// Changing the block of a file's extents on ext4, beside its checksum. Calibration: with files of 32 and 64 KiB, which have such a
    /// block, the same guests take 16,000 to 19,000 more for each extent that is freed, of which a checksum by tables has 14,300.
    change_leaf = 620;
    /// Taking a page's buffer head off and freeing it. Calibration: kswapd of guests that count instructions (6.1 and 6.12, a file of 700 MiB through
    /// 384 MiB, traced by batch) takes 620 and 700 more for each page that was written than for one that was read, of which the slab has 120.
    free_buffer = 135;
    /// Discarding a buffer that goes with its file: locked, its state cleared bit by bit. Calibration: as `change_leaf`, 2,700 instructions for each page
    /// of a file that is removed, of which 1,000 are the page's own and the rest `free_buffer`.
    discard_buffer = 265;
    /// Charging a batch of pages to a memory cgroup. Guess: two shared counters, each a miss.
    memcg_charge = 100;
    /// Adding up what a CPU has gathered of a memory cgroup's statistics. Guess: some 150 counters and what was known of them, 2.4 KiB in another
    /// CPU's cache, of which a line takes 50 to 60 ns on Skylake-SP.
    rstat_flush = 2_000;
    /// One read of a batch in io_uring, without lookup and copy: its request and completion. Source: 5 to 6 million cached
    /// 4 KiB reads a second on a core of 2022, copy included.
    io_uring_read = 200;
    /// Moving one page under an LRU lock that other CPUs take too. Source: fio alone in a group of 36 GiB, 72 jobs of random reads
    /// on 36 CPUs under 5.17-rc2 (v7 of the multi-gen LRU's patches): 2.24 million reads a second, 64 % of them misses, are as
    /// many as a lock gives that is held some 0.16 us for each of a miss's four moves, at 0.55 of the reference speed. The same under 5.19-rc1
    /// (ac35a4902374) reads 2.67 million a second, and 2.64 on the twin.
    lru_locked = 90;
    /// Passing a spin lock to a CPU that waits for it. Source: a line goes from core to core in 50 to 60 ns on Skylake-SP.
    lock_handoff = 60;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_path_is_half_of_all_but_moving_memory() {
        let (whole, half) = (Costs::default(), Costs::default().with_paths(PathLength::HalfButFiles));
        assert_eq!((half.syscall, half.fault, half.migrate_page), (75, 480, 493));
        assert_eq!(
            (half.copy_page, half.zero_huge, half.lock_handoff),
            (whole.copy_page, whole.zero_huge, whole.lock_handoff)
        );
        assert_eq!(half.program_call, whole.program_call, "programs are the same");
        assert_eq!(
            (half.create_ext4, half.unlink_ext4, half.reclaim_pass),
            (3_093, 5_205, 190),
            "three eighths, half, a twentieth"
        );
        let calls = Costs::default().with_paths(PathLength::HalfButCalls);
        assert_eq!((calls.read_call, calls.extend_ext4, calls.fault), (180, 623, 480));
        assert_eq!((calls.rmap_page, calls.unmap_page, calls.reclaim_page), (128, 180, half.reclaim_page));
        // Half of 8,250, and three quarters of 10,410.
        assert_eq!((calls.create_ext4, calls.unlink_ext4, calls.unlink_file), (4_125, 7_808, half.unlink_file));
        assert_eq!(Costs::default().with_paths(PathLength::Whole), whole);
        let quarters = Costs::default().with_paths(PathLength::ThreeQuartersButReclaim);
        // Three quarters of 150 and of 240, a sixth of 960, half of 100 and of 135.
        assert_eq!((quarters.syscall, quarters.read_call, quarters.fault), (113, 180, 160));
        assert_eq!((quarters.scan_page, quarters.free_buffer, quarters.reclaim_pass), (50, half.free_buffer, 190));
        let short = Costs::default().with_paths(PathLength::ShortFaultsAndReclaim);
        let reclaim = Costs { fault: 480, reclaim_page: 146, free_buffer: 81, reclaim_pass: 2_280, ..whole };
        assert_eq!(short, Costs { migrate_page: 591, compact_scan: 9, compact_isolate: 81, ..reclaim });
        // Three quarters of 78, and fifteen sixteenths of 896.
        let names = Costs { search_name: 58, crc32c_kib_tables: 840, ..Costs::default() };
        assert_eq!(Costs::default().with_paths(PathLength::ShortNames), names);
    }

    #[test]
    fn checksums_and_random_numbers_take_what_a_guest_without_their_drivers_takes() {
        let guest = Costs::default().at_speed(0.25);
        // 28 instructions of a nanosecond for eight bytes, and 7,360 for a number.
        assert_eq!(guest.clone().with_crc32c_by_tables(), Costs { crc32c_kib: 3_584, ..guest.clone() });
        assert_eq!(guest.clone().with_extracted_random(), Costs { random_number: 7_360, ..guest });
    }

    #[test]
    fn a_machine_may_say_what_its_memory_takes() {
        let costs = Costs::default().at_speed(0.25);
        assert_eq!((costs.syscall, costs.copy_page), (600, 1_800));
        // 512 pages are a huge one.
        let told = costs.clone().with_page_ns(512);
        assert_eq!((told.copy_page, told.zero_page, told.zero_huge), (512, 512, 512 * 512));
        assert_eq!(told, Costs { copy_page: 512, zero_page: 512, zero_huge: 262_144, ..costs.clone() });
        let told = costs.clone().with_compress_ns(CompressCosts { lzo: [1, 2], lz4: [3, 4], zstd: [5, 6] });
        let (compress, decompress) = (told.compress_lz4, told.decompress_lz4);
        assert_eq!((told.compress_lzo, told.decompress_lzo, compress, decompress), (1, 2, 3, 4));
        assert_eq!((told.compress_zstd, told.decompress_zstd, told.copy_page), (5, 6, costs.copy_page));
    }
}
