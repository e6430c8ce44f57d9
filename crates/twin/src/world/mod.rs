//! The world of the simulation: the memory of the machine, its devices, and who waits for what.

mod effects;

use std::collections::VecDeque;

use blockdev::{Batch, Op};
use mm::memcg::MemcgError;
use mm::reclaim::ThrottleReason;
use mm::slab::REAP_INTERVAL;
use mm::writeback::{TaskDirty, WbId};
use mm::{Bio, Effect, Env, Mm, Reserve, TaskFlags};
use rules::{BootTimers, Era};
use sim::{Class, CpuGroup, Ctl, PsiGroup, TaskId, TaskState, WaitQueueId};
use sys::SysError;
use units::{CpuId, MemcgId, Nanos, NodeId, Pfn, SpaceId};

use crate::devices::{Devices, InFlight};
use crate::log::{CpuTime, RunLog};
use crate::notify::Notifier;
use crate::reason::SleepReason;
use crate::run::Change;
use crate::standstill::Allocating;
use crate::sys::Processes;

/// Wait queues for page bits, as the kernel hashes them (`folio_wait_table`, mm/filemap.c).
const PAGE_WAIT_TABLE_BITS: u32 = 8;

/// What happens without a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A device has something to do.
    Device(u16),
    /// The tick after which what waits for a grace period is looked at.
    Rcu,
    /// The periodic flush of a device is due.
    Flusher(WbId),
    /// SLAB's worker of every CPU is due.
    SlabReap,
    /// The vmstat worker of every CPU is due.
    Vmstat,
    /// The statistics of memory cgroups are due to be added up.
    MemcgStats,
    /// The watchers of a memory cgroup are due to be told what happened in it.
    Notify(MemcgId),
    /// A tunable is due to be changed: the number of the change.
    Change(usize),
}

/// `vm.stat_interval`.
pub(crate) const STAT_INTERVAL: Nanos = Nanos::secs(1);
/// `FLUSH_TIME` (mm/memcontrol.c, 6.12) is 500 ticks of 4 ms. A timer of that length waits in a level of the wheel with a grain
/// of 8 ticks, to which its end is rounded up, and beyond: 504 ticks (`calc_index()`, kernel/time/timer.c).
pub(crate) const MEMCG_FLUSH_INTERVAL: Nanos = Nanos::millis(2016);
/// From the boot to the first flush of those statistics, and to kcompactd's first look ([`BootTimers`]); later ones come at their intervals
/// after them.
pub(crate) fn first_after_boot(rule: BootTimers) -> [Nanos; 2] {
    match rule {
        BootTimers::Linux510 => [Nanos::micros(152_700), Nanos::micros(300_200)],
        BootTimers::Linux61 => [Nanos::micros(152_700), Nanos::micros(376_700)],
        BootTimers::Linux612 => [Nanos::micros(225_200), Nanos::micros(481_300)],
    }
}

/// Who waits for what.
pub(crate) struct Queues {
    page: Vec<WaitQueueId>,
    /// kswapd of each node, while it sleeps.
    pub(crate) kswapd: Vec<WaitQueueId>,
    /// kcompactd of each node, while it sleeps.
    pub(crate) kcompactd: Vec<WaitQueueId>,
    /// Flusher of each group for each device, while it sleeps.
    flusher: Vec<Vec<WaitQueueId>>,
    /// Those that write the log and the metadata, while they sleep.
    pub(crate) log: WaitQueueId,
    /// Reclaimers of each node that wait, by reason (`pgdat->reclaim_wait`, `pgdat->pfmemalloc_wait`).
    reclaim: Vec<[WaitQueueId; ThrottleReason::COUNT]>,
    /// Those of each node that sleep until a new generation begins.
    pub(crate) aging: Vec<WaitQueueId>,
    /// Writers of data to be on the device (`sync`, `fsync`).
    pub(crate) written: WaitQueueId,
    /// The worker that goes on with bios that a limit held back, while it sleeps.
    pub(crate) dispatch: WaitQueueId,
    /// The worker that frees XFS's evicted inodes, while there are none.
    pub(crate) evicted: WaitQueueId,
    /// Who ends XFS's writes sleeps here.
    pub(crate) end_io: WaitQueueId,
    /// Those that wait for a journal to be written.
    pub(crate) journalled: WaitQueueId,
    pub(crate) reserved: WaitQueueId,
    /// Those that lack memory for a bio.
    pub(crate) bio_pool: WaitQueueId,
    /// Each CPU's worker, while it sleeps.
    pub(crate) worker: Vec<WaitQueueId>,
    /// khugepaged, while it sleeps.
    pub(crate) khugepaged: WaitQueueId,
    /// The worker that shrinks zswap, while it sleeps.
    pub(crate) zswap: WaitQueueId,
}

impl Queues {
    fn none() -> Queues {
        Queues {
            page: Vec::new(),
            kswapd: Vec::new(),
            kcompactd: Vec::new(),
            flusher: Vec::new(),
            log: WaitQueueId(u32::MAX),
            reclaim: Vec::new(),
            aging: Vec::new(),
            written: WaitQueueId(u32::MAX),
            dispatch: WaitQueueId(u32::MAX),
            evicted: WaitQueueId(u32::MAX),
            end_io: WaitQueueId(u32::MAX),
            journalled: WaitQueueId(u32::MAX),
            reserved: WaitQueueId(u32::MAX),
            bio_pool: WaitQueueId(u32::MAX),
            worker: Vec::new(),
            khugepaged: WaitQueueId(u32::MAX),
            zswap: WaitQueueId(u32::MAX),
        }
    }

    pub(crate) fn new(ctl: &mut Ctl<World>, nr_nodes: usize, nr_devices: usize) -> Queues {
        let nr_cpus = ctl.topology().nr_cpus();
        let mut table = |n: usize| (0..n).map(|_| ctl.new_wait_queue()).collect::<Vec<_>>();
        Queues {
            page: table(1 << PAGE_WAIT_TABLE_BITS),
            kswapd: table(nr_nodes),
            kcompactd: table(nr_nodes),
            flusher: vec![table(nr_devices)],
            log: table(1)[0],
            reclaim: (0..nr_nodes).map(|_| std::array::from_fn(|_| table(1)[0])).collect(),
            aging: table(nr_nodes),
            written: table(1)[0],
            dispatch: table(1)[0],
            evicted: table(1)[0],
            end_io: table(1)[0],
            journalled: table(1)[0],
            reserved: table(1)[0],
            bio_pool: table(1)[0],
            worker: table(nr_cpus),
            khugepaged: table(1)[0],
            zswap: table(1)[0],
        }
    }

    /// Flusher of a group for a device, while it sleeps.
    pub(crate) fn flusher(&self, wb: WbId) -> WaitQueueId {
        self.flusher[wb.group.index()][usize::from(wb.device)]
    }

    /// Where reclaimers of a node wait for this reason.
    pub(crate) fn throttle(&self, node: NodeId, reason: ThrottleReason) -> WaitQueueId {
        self.reclaim[node.index()][reason as usize]
    }

    /// The queue that waiters for this frame share with others.
    pub(crate) fn page(&self, pfn: Pfn) -> WaitQueueId {
        self.page[(pfn.0.wrapping_mul(0x9E37_79B1) >> (32 - PAGE_WAIT_TABLE_BITS)) as usize]
    }
}

/// What the twin knows of a task beside its future.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskInfo {
    pub(crate) flags: TaskFlags,
    /// Its process, if it belongs to the workload.
    pub(crate) process: Option<u32>,
    /// The task that spawned it.
    pub(crate) parent: Option<TaskId>,
    /// A module's thread: what it computes is system time.
    pub(crate) kernel: bool,
    /// Where it waits for a bio of its own.
    pub(crate) io: Option<WaitQueueId>,
    /// What it has dirtied (`current->nr_dirtied` and alike).
    pub(crate) dirty: TaskDirty,
    /// It never returns to user mode again.
    pub(crate) dead: bool,
    /// Pages that it charged while its memory cgroup was above `memory.high` (`memcg_nr_pages_over_high`).
    pub(crate) over_high: u64,
    /// The reserve of memory for bios that it would have had to wait for as it wrote, and has not yet.
    pub(crate) overdrawn: Option<Reserve>,
    /// Requests that it may take though the queue is full.
    pub(crate) batch: Batch,
    /// The device and its list of requests at which it would have had to sleep as it wrote, and has not yet.
    pub(crate) refused: Option<(u16, usize)>,
    /// Pages that its program uses after each sleep.
    pub(crate) own_pages: OwnPages,
    /// It stalls for memory (`in_memstall`).
    pub(crate) memstall: bool,
    /// The allocation that it is in the slow path of.
    pub(crate) allocating: Option<Allocating>,
}

/// Pages of a thread's stack, data and heap.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnPages {
    /// How many they are.
    pub(crate) pages: u32,
    /// First of them, once they are mapped.
    pub(crate) first: Option<u32>,
    /// How often the thread had slept when they were last used.
    pub(crate) used_at: u32,
}

/// Name of the workload's memory cgroup.
const WORKLOAD_CGROUP: &str = "workload";

/// The whole machine.
pub(crate) struct World {
    pub(crate) mm: Mm,
    pub(crate) devices: Devices,
    pub(crate) queues: Queues,
    /// The flusher of each device.
    pub(crate) flushers: Vec<TaskId>,
    tasks: Vec<TaskInfo>,
    /// A task of which nothing was told.
    untold: TaskInfo,
    pub(crate) processes: Processes,
    /// The scheduler's group of the workload's tasks.
    pub(crate) workload_group: Option<CpuGroup>,
    /// Time between two ticks, and how long the last one was ago when the simulation started.
    pub(crate) ticks: (Nanos, Nanos),
    /// How fast its CPUs are, relative to the reference.
    pub(crate) cpu_speed: f64,
    /// Pages that are read ahead at most (`read_ahead_kb` of the device that is mounted).
    pub(crate) readahead_pages: u32,
    /// The memory cgroup that it runs in, and makes its own below.
    pub(crate) workload_memcg: MemcgId,
    pub(crate) log: RunLog,
    /// Which counters `/proc/vmstat` has.
    pub(crate) era: Era,
    /// CPU time that programs used outside the kernel.
    pub(crate) user_time: Nanos,
    effects: Vec<Effect>,
    /// What the present call reads and its caller is to submit.
    held_reads: Vec<Bio>,
    completed: Vec<(InFlight, Result<(), blockdev::IoError>)>,
    /// Bios that a limit held back and a worker is to copy, each with whether its device works.
    pub(crate) dispatched: VecDeque<(InFlight, bool)>,
    /// Tunables that change in the midst of the run.
    pub(crate) changes: Vec<Change>,
    pub(crate) notifier: Notifier,
}

impl World {
    /// A world without devices and wait queues, which need the simulation that it becomes part of.
    pub(crate) fn unwired(mm: Mm, processes: Processes, era: Era, ticks: (Nanos, Nanos)) -> World {
        World {
            mm,
            devices: Devices::new(Vec::new(), Vec::new(), None),
            queues: Queues::none(),
            flushers: Vec::new(),
            tasks: Vec::new(),
            untold: TaskInfo::default(),
            processes,
            workload_group: None,
            ticks,
            cpu_speed: 1.0,
            readahead_pages: 32,
            workload_memcg: mm::memcg::ROOT,
            log: RunLog::default(),
            era,
            user_time: Nanos::ZERO,
            effects: Vec::new(),
            held_reads: Vec::new(),
            completed: Vec::new(),
            dispatched: VecDeque::new(),
            changes: Vec::new(),
            notifier: Notifier::default(),
        }
    }

    /// CPU time of all tasks and interrupts so far.
    pub(crate) fn cpu_time(&self, ctl: &Ctl<World>) -> CpuTime {
        let tasks: Nanos = ctl.tasks().fold(ctl.irq_time(), |sum, (_, _, _, time)| sum + time);
        CpuTime { user: self.user_time, system: tasks.since(self.user_time) }
    }

    /// Host bytes of everything that grows with the machine, the workload's files or the length of the run.
    pub(crate) fn host_bytes(&self) -> usize {
        self.mm.host_bytes() + self.processes.host_bytes() + self.devices.host_bytes() + self.log.host_bytes()
    }

    /// Who calls: the running task, or an interrupt on the first CPU.
    pub(crate) fn env(&self, ctl: &Ctl<World>) -> Env {
        match ctl.current() {
            Some(task) => Env { now: ctl.now(), cpu: ctl.cpu(), node: ctl.node(), task: self.task(task).flags },
            None => Env { now: ctl.now(), cpu: CpuId(0), node: NodeId(0), task: TaskFlags::default() },
        }
    }

    /// Calls a mechanism, charges its CPU time to the running task and carries out its effects.
    #[inline]
    pub(crate) fn enter<R>(&mut self, ctl: &mut Ctl<World>, call: impl FnOnce(&mut Mm, &Env) -> R) -> R {
        let env = self.env(ctl);
        self.enter_as(ctl, &env, call)
    }

    /// As [`World::enter`], but what is read is given to the caller, who submits it.
    #[inline]
    pub(crate) fn enter_holding_reads<R>(
        &mut self,
        ctl: &mut Ctl<World>,
        call: impl FnOnce(&mut Mm, &Env) -> R,
    ) -> (R, Vec<Bio>) {
        let mut env = self.env(ctl);
        env.task.holds_reads = true;
        let result = self.enter_as(ctl, &env, call);
        (result, std::mem::take(&mut self.held_reads))
    }

    #[inline]
    fn enter_as<R>(&mut self, ctl: &mut Ctl<World>, env: &Env, call: impl FnOnce(&mut Mm, &Env) -> R) -> R {
        self.mm.called_by(env);
        self.devices.update_room(&mut self.mm, env.now);
        let result = call(&mut self.mm, env);
        self.charge(ctl, env.cpu);
        let over_high = self.mm.memcg_take_over_high();
        if over_high > 0
            && let Some(task) = ctl.current()
        {
            self.task_mut(task).over_high += over_high;
        }
        if self.mm.trace.is_pending() {
            self.log.take_trace(&mut self.mm, ctl);
        }
        if !self.mm.effects.is_empty() {
            self.carry_out(ctl);
        }
        result
    }

    /// When the CPUs' next tick comes.
    fn next_tick(&self, now: Nanos) -> Nanos {
        let (tick, since) = self.ticks;
        Nanos(now.0 + tick.0 - (now.0 + since.0) % tick.0)
    }

    /// Charges who called a mechanism; an interrupt takes its time from whoever it interrupts.
    /// Abstracted: all devices interrupt the first CPU, as a controller with one vector does (the kernel hands the end of a request on to
    /// CPUs that share a cache with its submitter).
    #[inline]
    fn charge(&mut self, ctl: &mut Ctl<World>, cpu: CpuId) {
        let time = Nanos(self.mm.take_cpu_ns());
        if ctl.current().is_none() && ctl.task_on(cpu).is_some() {
            ctl.interrupt(cpu, time);
        } else {
            ctl.charge(time);
        }
    }

    /// Gives a bio to its device; `waiter` is woken at its end.
    pub(crate) fn submit(&mut self, ctl: &mut Ctl<World>, bio: mm::Bio, waiter: Option<WaitQueueId>) {
        let task = ctl.current();
        let mut batch = task.map_or_else(Batch::default, |task| self.task(task).batch);
        let overdrawn = self.mm.overdraws(&bio);
        let refused = self.devices.submit(ctl, bio, waiter, &mut batch);
        self.note_congestion(ctl, bio.device);
        if let Some(task) = task {
            let info = self.task_mut(task);
            info.batch = batch;
            if bio.write {
                info.overdrawn = overdrawn.or(info.overdrawn);
                info.refused = refused.map(|list| (bio.device, list)).or(info.refused);
            }
        }
    }

    /// Tells reclaim whether the write queue of a device is congested, and those who wait for congestion to end if it was not
    /// when a request was freed (`clear_wb_congested()`).
    fn note_congestion(&mut self, ctl: &mut Ctl<World>, device: u16) {
        let model = &mut self.devices.list[usize::from(device)];
        let eased = model.take_eased();
        self.mm.set_device_congested(device, model.congested(Op::Write));
        if eased {
            for queues in &self.queues.reclaim {
                ctl.wake_all(queues[ThrottleReason::Device as usize]);
            }
        }
    }

    fn device_event(&mut self, ctl: &mut Ctl<World>, number: u16) {
        let mut completed = std::mem::take(&mut self.completed);
        self.devices.advance(ctl, number, &mut completed);
        let any = !completed.is_empty();
        for (entry, result) in completed.drain(..) {
            if self.mm.copies(number) {
                self.dispatched.push_back((entry, result.is_ok()));
                ctl.wake_all(self.queues.dispatch);
            } else {
                self.end_bio(ctl, entry, result.is_ok());
            }
        }
        self.completed = completed;
        if any {
            self.note_congestion(ctl, number);
            self.devices.wake_waiters(ctl, number);
        }
    }

    /// A bio of a device has ended, or failed.
    pub(crate) fn end_bio(&mut self, ctl: &mut Ctl<World>, entry: InFlight, ok: bool) {
        let bio = entry.bio;
        self.enter(ctl, |mm, env| mm.end_bio(env, &bio, ok));
        if bio.write {
            ctl.wake_all(self.queues.written);
        }
        ctl.wake_all(self.queues.bio_pool);
        if let Some(queue) = entry.waiter {
            ctl.wake_all(queue);
        }
    }

    /// Makes a new task a thread of a process.
    pub(crate) fn adopt(&mut self, ctl: &mut Ctl<World>, task: TaskId, process: u32) {
        let space = self.processes.of(process).space;
        let memcg = self.mm.memcg_of_space(space);
        ctl.move_to_psi_group(task, psi_group(memcg));
        let flags = TaskFlags { memcg, space: Some(space), ..TaskFlags::default() };
        *self.task_mut(task) = TaskInfo { flags, process: Some(process), ..TaskInfo::default() };
        self.processes.of_mut(process).threads.push(task);
    }

    /// Makes the memory cgroup that the workload runs in, and puts its first process there; its flushers are to be started. Kernels
    /// whose memory cgroups are not modelled do without.
    pub(crate) fn enter_workload_cgroup(&mut self, ctl: &mut Ctl<World>, process: u32) -> Vec<WbId> {
        let (memcg, flushers) = match self.make_memcg(ctl, mm::memcg::ROOT, WORKLOAD_CGROUP) {
            Err(MemcgError::ZoneLists) => return Vec::new(),
            made => made.expect("it is the first, before anything was evicted"),
        };
        self.workload_memcg = memcg;
        self.enter_memcg(ctl, process, memcg);
        flushers
    }

    /// Makes a memory cgroup, whose flushers are to be started.
    pub(crate) fn make_memcg(
        &mut self,
        ctl: &mut Ctl<World>,
        parent: MemcgId,
        name: &str,
    ) -> Result<(MemcgId, Vec<WbId>), MemcgError> {
        let memcg = self.mm.memcg_create(parent, name)?;
        let psi = ctl.add_psi_group(psi_group(parent));
        assert_eq!(psi, psi_group(memcg), "groups are numbered alike");
        let devices = 0..self.devices.list.len() as u16;
        self.queues.flusher.push(devices.clone().map(|_| ctl.new_wait_queue()).collect());
        Ok((memcg, devices.map(|device| WbId { group: memcg, device }).collect()))
    }

    /// Puts a process into a memory cgroup.
    pub(crate) fn enter_memcg(&mut self, ctl: &mut Ctl<World>, process: u32, memcg: MemcgId) {
        let process = self.processes.of(process);
        let threads = process.threads.clone();
        self.mm.memcg_attach(process.space, memcg);
        for thread in threads {
            self.task_mut(thread).flags.memcg = memcg;
            ctl.move_to_psi_group(thread, psi_group(memcg));
        }
    }

    /// Has all threads of a process end, and wakes those whose sleep a signal ends.
    pub(crate) fn kill_process(&mut self, ctl: &mut Ctl<World>, process: u32) {
        let process = self.processes.of_mut(process);
        process.exiting = true;
        for thread in &process.threads {
            if let TaskState::Blocked { reason, .. } = ctl.task_state(*thread)
                && reason.is_killable()
            {
                ctl.wake_task(*thread);
            }
        }
    }

    /// Kills the process of a space for its memory; its threads may use the reserves.
    pub(crate) fn oom_kill(&mut self, ctl: &mut Ctl<World>, space: SpaceId) {
        self.mm.oom_kill(space);
        let process = self.processes.with_space(space).expect("a live space has a process");
        for thread in self.processes.of(process).threads.clone() {
            self.task_mut(thread).flags.oom_victim = true;
        }
        self.kill_process(ctl, process);
    }

    /// The run cannot go on.
    pub(crate) fn fail(&mut self, ctl: &mut Ctl<World>, error: SysError) {
        self.log.failure.get_or_insert(error);
        ctl.stop();
    }

    /// What the twin knows of a task.
    #[inline]
    pub(crate) fn task(&self, task: TaskId) -> &TaskInfo {
        self.tasks.get(task.index()).unwrap_or(&self.untold)
    }

    /// Whether a task belongs to a process whose threads are all to end.
    #[inline]
    pub(crate) fn is_to_end(&self, task: TaskId) -> bool {
        self.task(task).process.is_some_and(|process| self.processes.of(process).exiting)
    }

    /// Whether a task has something to do before it returns to user mode: to end, to wait for its memory cgroup, or to use
    /// its own pages.
    #[inline]
    pub(crate) fn works_before_user_mode(&self, task: TaskId, sleeps: u32) -> bool {
        self.task(task).over_high > 0 || self.has_slept(task, sleeps) || self.is_to_end(task)
    }

    /// Whether a thread that slept so often so far has slept since it last used its own pages, if it has any.
    pub(crate) fn has_slept(&self, task: TaskId, sleeps: u32) -> bool {
        let own = self.task(task).own_pages;
        own.pages > 0 && own.used_at != sleeps
    }

    /// A task, and those that come from it, in the order in which they were spawned.
    pub(crate) fn line_of(&self, first: TaskId) -> Vec<TaskId> {
        let mut line = vec![first];
        // A task has a greater number than the one that spawned it.
        for number in first.0 + 1..self.tasks.len() as u32 {
            if self.task(TaskId(number)).parent.is_some_and(|parent| line.contains(&parent)) {
                line.push(TaskId(number));
            }
        }
        line
    }

    /// The same, to be changed.
    pub(crate) fn task_mut(&mut self, task: TaskId) -> &mut TaskInfo {
        if task.index() >= self.tasks.len() {
            self.tasks.resize(task.index() + 1, TaskInfo::default());
        }
        &mut self.tasks[task.index()]
    }
}

/// The account of the pressure on a memory cgroup.
pub(crate) fn psi_group(memcg: MemcgId) -> PsiGroup {
    PsiGroup(memcg.0)
}

impl sim::World for World {
    type Event = Event;
    type Reason = SleepReason;

    fn is_io_wait(reason: SleepReason) -> bool {
        reason.is_io()
    }

    fn switched_to(&mut self, task: TaskId) {
        if let Some(process) = self.task(task).process {
            self.mm.lru_gen_use_mm(self.processes.of(process).space);
        }
    }

    fn handle(&mut self, event: Event, ctl: &mut Ctl<World>) {
        match event {
            Event::Device(number) => self.device_event(ctl, number),
            Event::Flusher(wb) => {
                if self.mm.flusher_is_due(wb, ctl.now()) {
                    self.wake_flusher(ctl, wb);
                }
            }
            Event::Rcu => {
                if self.enter(ctl, |mm, env| mm.rcu_tick(env)) {
                    ctl.schedule_at(self.next_tick(ctl.now()), Class::Timer, Event::Rcu);
                }
            }
            Event::SlabReap => {
                self.enter(ctl, |mm, env| mm.slab_reap(env));
                ctl.schedule_after(REAP_INTERVAL, Class::Timer, Event::SlabReap);
            }
            Event::Vmstat => {
                self.enter(ctl, |mm, _| mm.vmstat_update());
                ctl.schedule_after(STAT_INTERVAL, Class::Timer, Event::Vmstat);
            }
            Event::Notify(memcg) => {
                self.notifier.goes_off(memcg, ctl.now());
                self.notify(ctl);
            }
            Event::Change(number) => {
                let Change { name, value, .. } = self.changes[number].clone();
                let done = self.enter(ctl, |mm, _| mm.set_tunable(&name, &value));
                done.expect("it was checked before the run");
            }
            Event::MemcgStats => {
                self.mm.flush_lru_stats();
                ctl.schedule_after(MEMCG_FLUSH_INTERVAL, Class::Timer, Event::MemcgStats);
            }
        }
    }
}
