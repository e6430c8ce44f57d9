//! Groups on small machines.
