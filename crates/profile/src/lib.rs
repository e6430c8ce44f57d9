//! Loads machines, kernels and experiments from TOML, and the registry of tunables.
