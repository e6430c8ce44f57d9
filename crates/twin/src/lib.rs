//! Joins the simulation and the mechanisms into a machine that runs workloads.
