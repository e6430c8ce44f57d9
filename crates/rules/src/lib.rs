//! The decisions in which kernels differ, one enum each, and the tunables a system exposes.
