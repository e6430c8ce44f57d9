//! What a workload may do, whichever world runs it.
