//! kernbench: builds of one kernel tree with a job for each CPU, one after the other.
//!
//! Source: mmtests of January 2015, `shellpack_src/src/kernbench/kernbench-bench`: the tree is unpacked and configured,
//! `make -j$NUMCPUS vmlinux` runs once to warm up and five times measured, with a `make clean` after each, and the tree is removed.
//! Abstracted: each job compiles what the same archives are made of, and all wait for the last before the kernel is linked; that takes
//! what linking for a whole build does (`bzImage`). `make clean` removes what was made, and starts no programs.
//! Omitted: the `sync` before each measured build; mmtests' monitors.

use sys::{SpawnOptions, Sys};
use units::Bytes;

use super::archive::Archive;
use super::build::{Builder, Compile, Job};
use crate::steps::join_all;
use crate::tree::Tree;

/// What is built, and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernbench {
    pub(super) passes: u64,
    pub(super) archive: Bytes,
    /// Files of the tree.
    pub(super) files: u32,
    pub(super) compile: Compile,
}

impl Kernbench {
    /// All passes; `number` tells one kernbench of a workload from others.
    pub(super) async fn run<S: Sys>(self, sys: &S, number: u64) -> sys::Result<()> {
        let tree = Tree::new(sys, &format!("kernbench-{number}"), self.files).await?;
        let archive = Archive::fetch(sys, &format!("kernbench-{number}-archive"), self.archive).await?;
        archive.unpack(sys, &tree).await?;
        Builder::new(tree.clone(), self.compile, sys.seed(), number << 32).configure(sys).await?;
        for pass in 0..self.passes {
            let builder = |job: u32| {
                Builder::new(tree.clone(), self.compile, sys.seed(), number << 32 | pass << 16 | u64::from(job))
            };
            let jobs = sys.info().cpus;
            let start = |number| {
                let mut builder = builder(number);
                sys.spawn(SpawnOptions::process(format!("make-{number}")), move |sys: S| async move {
                    builder.compile(&sys, Job { number, of: jobs }).await;
                })
            };
            join_all(sys, &(0..jobs).map(start).collect::<Vec<_>>()).await;
            builder(0).link(sys).await;
            tree.clean(sys).await?;
        }
        tree.remove(sys).await?;
        archive.remove(sys).await
    }
}
