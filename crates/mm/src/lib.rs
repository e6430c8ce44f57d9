//! The mechanisms of Linux memory management, synchronous and without a clock.
