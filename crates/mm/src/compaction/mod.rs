//! Compaction: moving pages together so that large blocks become free.
