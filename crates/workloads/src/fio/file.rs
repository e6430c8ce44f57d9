//! fio's job files as workloads.
//!
//! Rule: sections are jobs, `numjobs` clones each; jobs run together up to one with `stonewall`, which waits for those before it.
//! The files of all jobs are set up before the first job starts.

use sys::{SpawnOptions, Sys};
use units::Bytes;

use super::ini::{JobFileError, Section, sections, wrong};
use super::job::{Engine, FioJob, Setup, Share, run_together};
use super::options::Options;
use crate::{Param, ParamError, Params, WorkloadSpec};

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "fio",
    doc: "a job file of fio: `mmtwin run FILE.fio`",
    params: &[Param { name: "job", default: "", doc: "the text of the job file" }],
};

/// A job file, read.
#[derive(Clone, PartialEq, Debug)]
pub struct FioFile {
    /// Jobs that run together, in the order of the groups.
    groups: Vec<Vec<JobSection>>,
    /// What is worth telling: options that change nothing here, with their lines.
    notices: Vec<JobFileError>,
}

#[derive(Clone, PartialEq, Debug)]
struct JobSection {
    name: String,
    options: Options,
    file_size: Bytes,
    nr_files: u32,
    /// What is read and written in all, if it is not the size of all files once.
    io_size: Option<Bytes>,
}

impl FioFile {
    /// Reads the text of a job file.
    ///
    /// # Errors
    /// It is no job file, or asks for what is not modelled: the line, and what was expected.
    pub fn parse(text: &str) -> Result<FioFile, JobFileError> {
        let (mut groups, mut notices) = (Vec::<Vec<JobSection>>::new(), Vec::new());
        for section in sections(text)? {
            let job = job_section(&section, &mut notices)?;
            match groups.last_mut().filter(|_| !job.options.stonewall) {
                Some(group) => group.push(job),
                None => groups.push(vec![job]),
            }
        }
        Ok(FioFile { groups, notices })
    }

    pub(crate) fn from_params(params: &Params) -> Result<FioFile, ParamError> {
        let text = params.text("job");
        if text.is_empty() {
            return params.refuse("job", "the text of a job file; `mmtwin run FILE.fio` reads it".to_string());
        }
        FioFile::parse(text).map_err(|error| ParamError::JobFile { error })
    }

    /// Options that change nothing here, each with its line.
    pub fn notices(&self) -> &[JobFileError] {
        &self.notices
    }

    /// What its jobs call `directory`, which has to be there.
    pub fn directories(&self) -> Vec<String> {
        self.groups.iter().flatten().filter_map(|job| job.options.directory.clone()).collect()
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        let mut groups = Vec::new();
        let (mut number, all) = (0, self.groups.len() as f64);
        for (place, group) in self.groups.iter().enumerate() {
            let mut jobs = Vec::new();
            for section in group {
                for clone in 0..section.options.clones {
                    let mut job = section.job(&sys, clone, number).await?;
                    if jobs.is_empty() {
                        let time = job.runtime.filter(|_| job.time_based).map(|runtime| job.ramp + runtime);
                        job.share = Some(Share { from: place as f64 / all, to: (place + 1) as f64 / all, time });
                    }
                    jobs.push(job);
                    number += 1;
                }
            }
            groups.push((group[0].name.clone(), jobs));
        }
        sys.phase("set-up");
        for job in groups.iter().flat_map(|(_, jobs)| jobs) {
            job.setup_files(&sys).await?;
        }
        for (name, jobs) in groups {
            sys.phase(&name);
            run_together(&sys, jobs).await;
        }
        Ok(())
    }
}

fn job_section(section: &Section, notices: &mut Vec<JobFileError>) -> Result<JobSection, JobFileError> {
    let mut options = Options::default();
    for entry in &section.entries {
        if let Some(what) = options.read(entry)? {
            let notice = JobFileError { line: entry.line, what };
            // A global section is read for each of its jobs.
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
    }
    // With names of files there are as many files as names.
    let nr_files = if options.filename.is_some() { 1 } else { options.nr_files };
    let of_size = options.size.map(|size| Bytes(size.0 / u64::from(nr_files)));
    let Some(file_size) = options.file_size.or(of_size) else {
        return wrong(section.line, format!("[{}]: expected size or filesize", section.name));
    };
    let file_size = Bytes(file_size.0 / options.block_size.0 * options.block_size.0);
    if file_size.0 == 0 || file_size.0 / options.block_size.0 > u64::from(u32::MAX) {
        let told = "expected files of at least one block and at most 4294967295 blocks";
        return wrong(section.line, format!("[{}]: {told}", section.name));
    }
    if options.time_based && options.runtime.is_none() {
        return wrong(section.line, format!("[{}]: time_based: expected a runtime", section.name));
    }
    let once = options.io_size.or(options.size.filter(|_| options.file_size.is_some()));
    let all = file_size.0 * u64::from(nr_files);
    let total = once.map_or(all, |size| size.0).saturating_mul(u64::from(options.loops));
    let io_size = (total != all).then_some(Bytes(total));
    Ok(JobSection { name: section.name.clone(), options, file_size, nr_files, io_size })
}

impl JobSection {
    /// A clone of it, with a number among all jobs.
    async fn job<S: Sys>(&self, sys: &S, clone: u32, number: u64) -> sys::Result<FioJob> {
        let o = &self.options;
        let below = o.directory.as_ref().map_or_else(|| "fio".to_string(), |directory| format!("fio/{directory}"));
        let own = || format!("{}.{clone}", self.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let dir = sys.mkdir(&format!("{below}/{}", o.filename.clone().unwrap_or_else(own))).await?;
        let options = if o.threads { SpawnOptions::thread("fio") } else { SpawnOptions::process("fio") };
        let pattern = o.pattern();
        let full = pattern.reads() || o.overwrite || o.engine == Engine::Mmap;
        Ok(FioJob {
            block_size: o.block_size,
            service: o.service,
            time_based: o.time_based,
            runtime: o.runtime,
            ramp: o.ramp,
            start_delay: o.start_delay,
            think: (o.think.0 > 0).then_some((o.think, o.think_blocks)),
            rate: o.rate,
            io_size: self.io_size,
            engine: o.engine,
            setup: match (o.create_on_open, full) {
                (true, _) => Setup::OnOpen,
                (false, true) => Setup::Full { fsync: o.create_fsync },
                (false, false) => Setup::Empty,
            },
            invalidate: o.invalidate,
            hint: o.hint,
            fsync_every: (o.fsync_every > 0).then_some(o.fsync_every),
            end_fsync: o.end_fsync,
            measured: true,
            spawn: SpawnOptions { nice: o.nice, ..options },
            number,
            ..FioJob::new(pattern, self.file_size, self.nr_files, dir)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_together_up_to_a_stonewall() {
        let text = "[global]\nsize=1m\n[a]\n[b]\n[c]\nstonewall\n[d]\n";
        let file = FioFile::parse(text).unwrap();
        let names: Vec<Vec<&str>> =
            file.groups.iter().map(|g| g.iter().map(|job| job.name.as_str()).collect()).collect();
        assert_eq!(names, [vec!["a", "b"], vec!["c", "d"]]);
    }

    #[test]
    fn sizes_follow_from_each_other() {
        let sizes = |options: &str| {
            let file = FioFile::parse(&format!("[a]\n{options}\n")).unwrap();
            let job = &file.groups[0][0];
            (job.file_size.0, job.nr_files, job.io_size.map(|size| size.0))
        };
        assert_eq!(sizes("size=1m\nnrfiles=4"), (256 << 10, 4, None));
        assert_eq!(sizes("filesize=64k\nnrfiles=4"), (64 << 10, 4, None));
        assert_eq!(sizes("filesize=64k\nnrfiles=4\nsize=128k"), (64 << 10, 4, Some(128 << 10)));
        assert_eq!(sizes("size=1m\nio_size=3m"), (1 << 20, 1, Some(3 << 20)));
        assert_eq!(sizes("size=1m\nloops=2"), (1 << 20, 1, Some(2 << 20)));
        assert_eq!(sizes("size=10000\nbs=4k"), (8192, 1, None), "whole blocks");
        assert_eq!(sizes("size=1m\nnrfiles=4\nfilename=x"), (1 << 20, 1, None), "one name is one file");
    }

    #[test]
    fn what_has_no_effect_is_told_once_with_its_line() {
        let text = "[global]\niodepth=32\nsize=1m\n[a]\nioengine=libaio\n[b]\n";
        let notices: Vec<String> = FioFile::parse(text).unwrap().notices().iter().map(ToString::to_string).collect();
        let one_by_one = "5: ioengine=libaio: buffered I/O is served one after another, as if iodepth were 1";
        assert_eq!(notices, ["2: iodepth: without effect on memory", one_by_one]);
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_its_line() {
        for (options, line, told) in [
            ("rw=read", 1, "[a]: expected size or filesize"),
            ("size=1m\nruntim=3", 3, "runtim: expected an option of fio"),
            ("size=1m\ndirect=1", 3, "direct=1: expected I/O through the page cache"),
            ("size=1m\nrw=trim", 3, "rw=trim: expected one of read, write, randread"),
            ("size=1m\nverify=crc32c", 3, "verify: not modelled"),
            ("size=50%", 2, "size=50%: expected one size"),
            ("size=1m\nbs=4k,8k", 3, "bs=4k,8k: expected one size"),
            ("size=1m\nbs=2m", 1, "expected files of at least one block"),
            ("size=1m\ntime_based", 1, "time_based: expected a runtime"),
            ("size=1m\nnumjobs=0", 3, "numjobs=0: expected a whole number from 1 to 1024"),
            ("size=1m\nfilename=../x", 3, "filename=../x: expected one name"),
            ("size=1m\nrandom_distribution=normal:10", 3, "random_distribution=normal:10: expected random, zipf:THETA"),
            ("size=1m\nrandom_distribution=zipf:1", 3, "random_distribution=zipf:1: expected random, zipf:THETA"),
            ("size=1m\nioengine=rbd", 3, "ioengine=rbd: expected sync"),
        ] {
            let error = FioFile::parse(&format!("[a]\n{options}\n")).unwrap_err();
            assert!(error.line == line && error.what.contains(told), "{options:?}: {error}");
        }
    }

    #[test]
    fn numbers_take_fios_suffixes() {
        let options = "size=1MiB\nbs=8K\nruntime=2m\nthinktime=5ms\nramp_time=3\nfilesize=0x";
        let error = FioFile::parse(&format!("[a]\n{options}\n")).unwrap_err();
        assert_eq!(error.line, 7);
        let file = FioFile::parse(&format!("[a]\n{}\n", options.trim_end_matches("\nfilesize=0x"))).unwrap();
        let o = &file.groups[0][0].options;
        assert_eq!((o.size, o.block_size), (Some(Bytes::mib(1)), Bytes::kib(8)));
        assert_eq!((o.runtime.unwrap().0, o.think.0, o.ramp.0), (120_000_000_000, 5_000_000, 3_000_000_000));
    }
}
