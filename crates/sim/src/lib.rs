//! Deterministic virtual time: event heap, async tasks, wait queues, fairly shared CPUs, named random streams.
