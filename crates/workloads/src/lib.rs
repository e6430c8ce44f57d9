//! Workload programs, written once against Sys.
