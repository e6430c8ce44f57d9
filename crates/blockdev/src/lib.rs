//! Block devices as event-driven models: rotating disk, SSD, RAM disk, USB stick, RAID-0, and their request queues.
