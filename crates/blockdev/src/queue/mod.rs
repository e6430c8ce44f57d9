//! The request queue: bios become requests, adjacent ones merge, a scheduler picks the next.
//!
//! **Rule.** A read or write joins a queued request of the same operation that ends where it begins (back merge) or
//! begins where it ends (front merge), if together they are at most `max_sectors_kb`; a request that now touches
//! its neighbour in sector order joins that too. Flushes skip the scheduler, and all that wait share one.
//! **Source.** block/blk-merge.c (`ll_back_merge_fn()`, `attempt_merge()`), block/elevator.c, block/blk-flush.c, 6.12.
//! **Abstracted.** Segment limits (`max_segments`, gaps) never bind. Of several requests that a bio could join,
//! mq-deadline and CFQ here find only the one next to it in sector order, where Linux's hash also finds one that overlaps.
//! **Omitted.** BFQ, Kyber; `nomerges`; the flush machinery's order of data and post-flush (no FUA here).

mod batch;
mod cfq;
mod congestion;
mod deadline;
mod fifo;
mod sorted;

use crate::bio::Op;
use crate::model::Traits;
use crate::slab::{NIL, Slab};
use crate::spec::{SpecError, check};
pub use batch::Batch;
use cfq::Cfq;
pub use cfq::CfqSpec;
pub(crate) use congestion::Congestion;
pub use congestion::Wakes;
use deadline::Deadline;
pub use deadline::DeadlineSpec;
use fifo::Fifo;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Which scheduler orders the requests.
#[derive(Deserialize, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerSpec {
    /// In order of arrival (`none`; `noop` of the legacy queue).
    #[serde(alias = "noop")]
    None,
    /// `mq-deadline`; `deadline` of the legacy queue.
    #[serde(alias = "deadline")]
    MqDeadline,
    /// `cfq` of the legacy queue.
    Cfq,
}

/// The files under `/sys/block/*/queue/` that matter here.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct QueueSpec {
    /// Requests before submitters must wait, with CFQ of reads and other synchronous I/O and of asynchronous writes each;
    /// 4 to 65,536. Default 128 (`BLKDEV_MAX_RQ`, `BLKDEV_DEFAULT_RQ`). A multi-queue (SCSI's default since 4.19) with a scheduler has twice
    /// the device's depth, at most 256 (`blk_mq_init_sched()`): 64 for SATA.
    pub nr_requests: u32,
    /// The scheduler. Default mq-deadline.
    pub scheduler: SchedulerSpec,
    /// Longest request in KiB; 4 to 65,536. Default 1280 (`BLK_DEF_MAX_SECTORS`, 6.12: `.._CAP`, of 2560 sectors); 512 for 2.6 and 3.x.
    pub max_sectors_kb: u32,
    /// Largest window of readahead in KiB, if it is not the device's own ([`DeviceSpec::read_ahead_kb`](crate::DeviceSpec::read_ahead_kb)); 4 to
    /// 65,536. Nothing here reads ahead: it is for who reads files.
    pub read_ahead_kb: Option<u32>,
    /// The files under `queue/iosched/` of mq-deadline.
    pub deadline: DeadlineSpec,
    /// The files under `queue/iosched/` of CFQ.
    pub cfq: CfqSpec,
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec {
            nr_requests: 128,
            scheduler: SchedulerSpec::MqDeadline,
            max_sectors_kb: 1280,
            read_ahead_kb: None,
            deadline: DeadlineSpec::default(),
            cfq: CfqSpec::default(),
        }
    }
}

impl QueueSpec {
    /// Checks every figure against its legal range.
    ///
    /// # Errors
    /// The first field out of range, its value and what was expected.
    pub fn validate(&self) -> Result<(), SpecError> {
        check("queue.nr_requests", u64::from(self.nr_requests), 4..=1 << 16)?;
        check("queue.max_sectors_kb", u64::from(self.max_sectors_kb), 4..=1 << 16)?;
        if let Some(kb) = self.read_ahead_kb {
            check("queue.read_ahead_kb", u64::from(kb), 4..=1 << 16)?;
        }
        self.deadline.validate()?;
        self.cfq.validate()
    }
}

/// A request: adjacent parts of bios, `struct request`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) op: Op,
    /// Whether it counts as synchronous: a read, or a write that someone waits for.
    pub(crate) sync: bool,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    /// Who submitted its first bio, and whether that was metadata.
    pub(crate) context: u32,
    pub(crate) meta: bool,
    /// Submission of its oldest bio.
    pub(crate) started: Nanos,
    /// First and last of its parts, in a table of the owner.
    pub(crate) parts: (u32, u32),
    /// When a scheduler prefers it to sector order.
    expires: Nanos,
    /// Neighbours in the order of arrival.
    older: u32,
    younger: u32,
    /// CFQ's queue that it is in, or was dispatched from.
    queue: u32,
}

impl Request {
    /// A request of one part.
    pub(crate) fn new(now: Nanos, op: Op, sync: bool, range: (u64, u32), part: u32) -> Request {
        Request {
            op,
            sync,
            sector: range.0,
            sectors: range.1,
            context: 0,
            meta: false,
            started: now,
            parts: (part, part),
            expires: Nanos::MAX,
            older: NIL,
            younger: NIL,
            queue: NIL,
        }
    }

    /// The request, submitted by that process.
    pub(crate) fn by(self, context: u32, meta: bool) -> Request {
        Request { context, meta, ..self }
    }

    /// First sector after it.
    pub(crate) fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// How `next` could join this request, if it touches it.
    fn touches(&self, next: &Request) -> Option<Side> {
        if self.op != next.op {
            None
        } else if self.end() == next.sector {
            Some(Side::Back)
        } else if next.end() == self.sector {
            Some(Side::Front)
        } else {
            None
        }
    }
}

/// A part of a bio within a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The bio, in a table of the owner.
    pub(crate) bio: u32,
    /// The next part of the same request.
    pub(crate) next: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Back,
    Front,
}

/// What became of a bio's part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Added {
    /// A request of its own.
    New,
    /// It joined a request.
    Merged,
    /// It joined a request, which then joined its neighbour; the neighbour was synchronous or not.
    Bridged {
        /// Whether the request that is gone counted as synchronous.
        gone_sync: bool,
    },
}

#[derive(Clone, Debug)]
enum Scheduler {
    Fifo(Fifo),
    Deadline(Deadline),
    Cfq(Box<Cfq>),
}

/// Queued requests. Requests in the device stay in its table until they complete.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) requests: Slab<Request>,
    pub(crate) parts: Slab<Part>,
    scheduler: Scheduler,
    flush: u32,
    sectors_max: u32,
    merges: bool,
}

impl Queue {
    /// The queue of a device like that.
    pub(crate) fn new(spec: &QueueSpec, traits: &Traits) -> Queue {
        let merges = !traits.bio_based;
        let scheduler = match spec.scheduler {
            SchedulerSpec::MqDeadline if merges => Scheduler::Deadline(Deadline::new(&spec.deadline)),
            SchedulerSpec::Cfq if merges => Scheduler::Cfq(Box::new(Cfq::new(&spec.cfq, traits.depth, traits.seeks))),
            _ => Scheduler::Fifo(Fifo::new()),
        };
        Queue {
            requests: Slab::new(),
            parts: Slab::new(),
            scheduler,
            flush: NIL,
            sectors_max: if merges { spec.max_sectors_kb * 2 } else { u32::MAX },
            merges,
        }
    }

    /// Longest request in sectors.
    pub(crate) fn sectors_max(&self) -> u32 {
        self.sectors_max
    }

    /// Whether a read or write waits for dispatch.
    pub(crate) fn has_data(&self) -> bool {
        match &self.scheduler {
            Scheduler::Fifo(fifo) => !fifo.is_empty(),
            Scheduler::Deadline(deadline) => !deadline.is_empty(),
            Scheduler::Cfq(cfq) => !cfq.is_empty(),
        }
    }

    /// Whether a flush waits for dispatch.
    pub(crate) fn has_flush(&self) -> bool {
        self.flush != NIL
    }

    /// Takes the waiting flush.
    pub(crate) fn pop_flush(&mut self) -> u32 {
        std::mem::replace(&mut self.flush, NIL)
    }

    /// Takes the read or write that goes next.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<u32> {
        match &mut self.scheduler {
            Scheduler::Fifo(fifo) => fifo.pop(),
            Scheduler::Deadline(deadline) => deadline.pop(&mut self.requests, now),
            Scheduler::Cfq(cfq) => cfq.pop(&mut self.requests, now),
        }
    }

    /// A read or write has completed.
    pub(crate) fn completed(&mut self, request: &Request, now: Nanos) {
        if let Scheduler::Cfq(cfq) = &mut self.scheduler {
            cfq.completed(&self.requests, request, now);
        }
    }

    /// When the scheduler stops holding requests back.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        match &self.scheduler {
            Scheduler::Cfq(cfq) => cfq.next_event(),
            Scheduler::Fifo(_) | Scheduler::Deadline(_) => None,
        }
    }

    /// Tells the scheduler the time.
    pub(crate) fn tick(&mut self, now: Nanos) {
        if let Scheduler::Cfq(cfq) = &mut self.scheduler {
            cfq.tick(now);
        }
    }

    /// Adds a bio's part, given as the request that it would be.
    pub(crate) fn add(&mut self, now: Nanos, part: Request) -> Added {
        if part.op == Op::Flush {
            return self.add_flush(part);
        }
        debug_assert!(0 < part.sectors && part.sectors <= self.sectors_max);
        let joined = if self.merges { self.join(&part) } else { None };
        joined.unwrap_or_else(|| {
            let slot = self.requests.insert(part);
            match &mut self.scheduler {
                Scheduler::Fifo(fifo) => fifo.insert(slot),
                Scheduler::Deadline(deadline) => deadline.insert(&mut self.requests, slot, now),
                Scheduler::Cfq(cfq) => cfq.insert(&mut self.requests, slot, now),
            }
            Added::New
        })
    }

    fn add_flush(&mut self, part: Request) -> Added {
        if self.flush == NIL {
            self.flush = self.requests.insert(part);
            return Added::New;
        }
        self.append(self.flush, &part);
        Added::Merged
    }

    fn join(&mut self, part: &Request) -> Option<Added> {
        let (requests, max) = (&self.requests, self.sectors_max);
        let (slot, side) = match &self.scheduler {
            Scheduler::Fifo(fifo) => fifo.find_merge(requests, part, max),
            Scheduler::Deadline(deadline) => {
                deadline.like(part).find_merge(requests, part, max, deadline.front_merges())
            }
            Scheduler::Cfq(cfq) => cfq.like(part).and_then(|like| like.find_merge(requests, part, max, true)),
        }?;
        let before = self.requests[slot].sector;
        self.append(slot, part);
        if side == Side::Front {
            self.moved(slot, before);
        }
        Some(self.bridge(slot, side).map_or(Added::Merged, |gone_sync| Added::Bridged { gone_sync }))
    }

    /// `slot` begins earlier than at `before`.
    fn moved(&mut self, slot: u32, before: u64) {
        let request = self.requests[slot];
        match &mut self.scheduler {
            Scheduler::Fifo(_) => {}
            Scheduler::Deadline(deadline) => deadline.like_mut(&request).moved(&self.requests, slot, before),
            Scheduler::Cfq(cfq) => cfq.moved(&self.requests, slot, before),
        }
    }

    /// Joins `slot`, which grew on `side`, with the neighbour that it may now touch.
    fn bridge(&mut self, slot: u32, side: Side) -> Option<bool> {
        let request = self.requests[slot];
        let (first, second) = match &self.scheduler {
            Scheduler::Fifo(_) => None,
            Scheduler::Deadline(deadline) => deadline.like(&request).neighbours(&self.requests, slot, side),
            Scheduler::Cfq(cfq) => cfq.neighbours(&self.requests, slot, side),
        }?;
        let (a, b) = (self.requests[first], self.requests[second]);
        if a.touches(&b) != Some(Side::Back) || a.sectors + b.sectors > self.sectors_max {
            return None;
        }
        match &mut self.scheduler {
            Scheduler::Fifo(_) => {}
            Scheduler::Deadline(deadline) => deadline.like_mut(&a).absorb(&mut self.requests, first, second),
            Scheduler::Cfq(cfq) => cfq.absorb(&mut self.requests, first, second),
        }
        self.append(first, &b);
        self.requests.remove(second);
        Some(b.sync)
    }

    /// Adds the parts and the range of `joining` to the request in `slot`.
    fn append(&mut self, slot: u32, joining: &Request) {
        let request = &mut self.requests[slot];
        self.parts[request.parts.1].next = joining.parts.0;
        request.parts.1 = joining.parts.1;
        request.sector = request.sector.min(joining.sector);
        request.sectors += joining.sectors;
        request.started = request.started.min(joining.started);
    }
}
