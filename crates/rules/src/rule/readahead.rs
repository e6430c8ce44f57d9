//! Decisions of readahead and of faults on mapped files.

use serde::{Deserialize, Serialize};

rule!(
    /// How readahead tells a miss from a mark.
    ReadaheadWindow {
        /// One decision for both (`ondemand_readahead()`): 4.20.
        OnDemand,
        /// A miss never continues a window, a mark only where it was set: 6.12.
        Split,
    }
);
rule!(
    /// What a window may have at most beside what its device allows (`max_sane_readahead()`).
    ReadaheadLimit {
        /// Half of what is inactive page cache or free on the node: until 3.14.
        HalfOfNode,
        /// 2 MiB: 6d2be915e589 (3.15) to 4.3.
        TwoMib,
        /// Nothing: since 600e19afc5f8 (4.4).
        Device,
    }
);
rule!(
    /// The size of a window that follows another (`get_next_ra_size()`).
    NextWindow {
        /// At most what the file or its reader may have, even if the last one, opened by a large read, had more: until 6.12.
        Capped,
        /// At least the size of the last one: since 158cdce87c8c (6.13, 6.1.124).
        NeverSmaller,
    }
);
rule!(
    /// What the search for the first missing page ahead of a mark, or before a read, says where as many pages as it looks at are
    /// all cached.
    CachedRun {
        /// The page beyond them: no window starts ahead of them, and all before a read count (`page_cache_next_hole()`): until 4.19.
        Beyond,
        /// The last page that it looked at: a window starts there, and one page less counts: since 0d3f92966629 (4.20).
        LastLooked,
        /// The page beyond them ahead, the last one before: since 901a269ff3d5 (6.10), as later corrected.
        BeyondAhead,
    }
);
rule!(
    /// Where a window of single pages has its mark that does not fit into its file.
    ReadaheadMark {
        /// So many pages from its start, none if that is behind the end: until 5.7.
        OfWindow,
        /// So many pages before the file's end: since 2c684234d36a (5.8).
        OfRead,
    }
);
rule!(
    /// How pages that are read ahead are allocated.
    ReadaheadGfp {
        /// As the file's other pages: until 5.7.
        Mapping,
        /// Without `__GFP_FS`, since the window's pages are locked before they are read (`memalloc_nofs_save()`): since f2c817bed58d (5.8).
        NoFs,
    }
);
rule!(
    /// How a page that a fault reads alone is allocated.
    FaultGfp {
        /// As the file's other pages: until 4.4.
        Mapping,
        /// With `__GFP_FS` and `__GFP_IO`, as a fault holds no lock of a file system (`__get_fault_gfp_mask()`): since c20cd45eb017 (4.5).
        EntersFs,
    }
);
rule!(
    /// Which pages around a fault make its file's misses fewer (`filemap_map_pages()`).
    FaultAroundHits {
        /// Those that it maps: until 4.7.
        Mapped,
        /// Those that are ready, mapped before or now: since bae473a423f6 and 7267ec008b5c (4.8).
        Met,
        /// Those of them that were not evicted and read again: since 5c46d5319bde (6.10).
        NotEvicted,
    }
);
