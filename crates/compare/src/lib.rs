//! Statistics and verdicts over runs.
