//! Snapshots, metrics and events of a run, and readers and writers of the kernel's text formats.
