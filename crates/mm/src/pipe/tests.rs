//! Pipes on a small machine: what they take and give back, and when readers wait.

use rules::Rules;

use super::*;
use crate::zone::testing::{env, one_zone};

const PAGE: u64 = PAGE_SIZE;

struct Machine {
    mm: Mm,
    env: Env,
}

impl Machine {
    fn new(rule: PipeRead) -> Machine {
        Machine { mm: one_zone(16, Rules { pipe_read: rule, ..Rules::newest() }), env: env(0) }
    }

    fn make(&mut self) -> PipeId {
        self.mm.pipe_create(&self.env, &mut PipeObjects::default()).expect("memory is plentiful")
    }

    fn write(&mut self, pipe: PipeId, length: u64) -> PipeWriteStop {
        self.mm.pipe_write(&self.env, &mut PipeWrite::new(pipe, length))
    }

    fn read(&mut self, pipe: PipeId, wanted: u64) -> (u64, bool) {
        let PipeBytes { bytes, emptied } = self.mm.pipe_read(&self.env, pipe, wanted);
        (bytes, emptied)
    }

    /// Pages that pipes hold.
    fn pages(&self) -> usize {
        self.mm.pipes.list.values().map(|pipe| pipe.ring.pages().count()).sum()
    }

    fn frames_of_kernel(&self) -> usize {
        (0..self.mm.frames.len() as u32).filter(|pfn| self.mm.frames[Pfn(*pfn)].kind() == Kind::Kernel).count()
    }

    fn objects(&self, cache: CacheId) -> usize {
        let of_pipes = self.mm.pipes.list.values().flat_map(|pipe| &pipe.objects);
        of_pipes.filter(|(of, _)| *of == cache).count()
    }

    fn check(&self) {
        assert_eq!(self.mm.validate(), []);
        assert_eq!(self.pages(), self.frames_of_kernel());
    }
}

#[test]
fn a_pipe_takes_16_pages_of_the_unmovable_type() {
    let mut m = Machine::new(PipeRead::Returns);
    let pipe = m.make();
    m.check();
    assert_eq!(m.write(pipe, 16 * PAGE), PipeWriteStop::Done);
    assert_eq!(m.write(pipe, 1), PipeWriteStop::Full);
    assert_eq!(m.pages(), 16);
    let unmovable = |pfn| m.mm.blocks.migratetype(pfn) == crate::MigrateType::Unmovable;
    assert!(m.mm.pipes.of(pipe).ring.pages().all(unmovable));
    m.check();
    // The first page is not empty before its last byte is read; it is kept then, and the second one is not.
    assert_eq!(m.read(pipe, PAGE - 1), (PAGE - 1, false));
    assert_eq!(m.write(pipe, 1), PipeWriteStop::Full);
    assert_eq!(m.read(pipe, 1), (1, true));
    assert_eq!(m.pages(), 16);
    assert_eq!(m.read(pipe, PAGE), (PAGE, true));
    assert_eq!(m.pages(), 15);
    assert_eq!(m.write(pipe, PAGE), PipeWriteStop::Done);
    assert_eq!(m.pages(), 15, "the one that was kept");
    m.check();
    assert_eq!(m.read(pipe, 100 * PAGE), (15 * PAGE, true));
    assert_eq!(m.pages(), 1);
}

#[test]
fn ends_take_a_file_each_and_the_last_takes_all_with_it() {
    let mut m = Machine::new(PipeRead::Returns);
    let pipe = m.make();
    let counts =
        |m: &Machine| [CacheId::INODE, CacheId::DENTRY, CacheId::FILP, CacheId::KMALLOC_1K].map(|of| m.objects(of));
    assert_eq!(counts(&m), [1, 1, 2, 1]);
    m.write(pipe, 3 * PAGE);
    m.mm.pipes.hold(pipe, PipeEnd::Read);
    let put = |m: &mut Machine, end| m.mm.pipe_put(&m.env, pipe, end);
    assert!(!put(&mut m, PipeEnd::Read), "another one refers to it");
    assert!(put(&mut m, PipeEnd::Read));
    assert_eq!(counts(&m), [1, 1, 1, 1]);
    assert_eq!(m.write(pipe, 1), PipeWriteStop::NoReader);
    assert_eq!(m.pages(), 3);
    m.check();
    assert!(put(&mut m, PipeEnd::Write));
    assert!(m.mm.pipes.is_empty());
    m.check();
    assert_ne!(m.make(), pipe, "numbers are not given again");
}

#[test]
fn a_write_and_a_new_pipe_go_on_where_memory_was_lacking() {
    let mut m = Machine::new(PipeRead::Returns);
    let pipe = m.make();
    let request = AllocRequest { gfp: Gfp::KERNEL, order: Order(0), node: m.env.node };
    let mut all = Vec::new();
    while let Some(pfn) = m.mm.alloc_pages(&m.env, request) {
        all.push(pfn);
    }
    let mut write = PipeWrite::new(pipe, 2 * PAGE + 5);
    let lacking = m.mm.pipe_write(&m.env, &mut write);
    let PipeWriteStop::Need(Need::Page(asked)) = lacking else { panic!("{lacking:?}") };
    assert_eq!((asked.order, asked.gfp), (Order(0), PIPE_PAGE));
    write.hand = all.pop();
    let mut objects = PipeObjects::default();
    while m.mm.pipe_create(&m.env, &mut objects).is_ok() {}
    for pfn in all {
        m.mm.free_pages(&m.env, pfn, Order(0));
    }
    assert_eq!(m.mm.pipe_write(&m.env, &mut write), PipeWriteStop::Done);
    assert_eq!((m.pages(), write.hand), (3, None));
    assert!(m.mm.pipe_create(&m.env, &mut objects).is_ok());
    assert_eq!(m.objects(CacheId::FILP), 2 * m.mm.pipes.len());
    assert_eq!(m.read(pipe, 9 * PAGE), (2 * PAGE + 5, true));
    m.check();
}

/// With more to come, a reader that has something waits for a writer that waits, where that is the rule; one that has nothing, for any writer.
#[test]
fn who_waits_for_more_depends_on_the_rule() {
    for rule in [PipeRead::WaitsForWriters, PipeRead::Returns] {
        let mut m = Machine::new(rule);
        let pipe = m.make();
        let waits = |m: &Machine, done| m.mm.pipe_read_waits(pipe, done, 10);
        assert_eq!([0, 9, 10].map(|done| waits(&m, done)), [true, false, false]);
        m.mm.pipes.writer_waits(pipe, true);
        assert_eq!([0, 9, 10].map(|done| waits(&m, done)), [true, rule == PipeRead::WaitsForWriters, false]);
        m.mm.pipes.writer_waits(pipe, false);
        assert!(!waits(&m, 9));
        m.mm.pipe_put(&m.env, pipe, PipeEnd::Write);
        assert_eq!([0, 9].map(|done| waits(&m, done)), [false, false], "nobody is left");
    }
}

#[test]
fn a_group_pays_for_the_pages_that_its_tasks_write() {
    let mut m = Machine::new(PipeRead::Returns);
    let (pipe, group) = (m.make(), m.mm.memcg_create(crate::memcg::ROOT, "a").expect("the first one"));
    let charged = |m: &Machine| m.mm.memcg_kernel_pages(group, KernelPage::Pipe);
    m.env.task.memcg = group;
    m.write(pipe, 3 * PAGE);
    assert_eq!(charged(&m), 3);
    m.check();
    // Whoever reads: one page is kept, and stays charged.
    m.env.task.memcg = crate::memcg::ROOT;
    m.read(pipe, 2 * PAGE);
    assert_eq!(charged(&m), 2);
    m.check();
    let own = m.make();
    m.write(own, PAGE);
    for end in PipeEnd::ALL {
        m.mm.pipe_put(&m.env, pipe, end);
    }
    assert_eq!(charged(&m), 0);
    m.check();
}
