//! Reclaim: LRU lists, the scan, workingset detection and the shrinkers.
