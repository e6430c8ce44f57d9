//! Reverse mapping: what reclaim and compaction ask of the owner of a frame.
