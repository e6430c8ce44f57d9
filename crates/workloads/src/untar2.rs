//! untar2: makes many small files, looks all of them up, syncs, removes them.
//!
//! Source: own, as the reference runs of real guests have it: three processes, one after another, which do to small files what the
//! untar step of mmtests' `shellpacks/shellpack-bench-largecopy` does to those of a kernel tree.
//! Abstracted: the directories, a three-hundredth of the names, stay; each process asks for them by name (`mkdir -p`).

use sys::{FileName, OpenMode, SpawnOptions, Sys};
use units::Bytes;

use crate::steps::{OWN_PAGES, run_process};
use crate::{Param, ParamError, Params, WorkloadSpec};

/// As the command line lists it.
pub(crate) const SPEC: WorkloadSpec = WorkloadSpec {
    name: "untar2",
    doc: "makes many small files, looks them up, syncs, removes them",
    params: &[
        Param { name: "dirs", default: "100", doc: "directories" },
        Param { name: "files", default: "300", doc: "files in each" },
        Param { name: "file-size", default: "3000", doc: "size of a file" },
    ],
};

/// The workload with its parameters.
#[derive(Clone, Debug)]
pub struct Untar2 {
    dirs: u64,
    files: u64,
    file_size: Bytes,
}

impl Untar2 {
    pub(crate) fn from_params(params: &Params) -> Result<Untar2, ParamError> {
        Ok(Untar2 {
            dirs: params.number("dirs", 1, 4000)?,
            files: params.number("files", 1, 1 << 24)?,
            file_size: params.size("file-size", Bytes(0), Bytes::mib(64))?,
        })
    }

    pub(crate) async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        sys.phase("make");
        let maker = self.clone();
        run_process(&sys, SpawnOptions::process("mkfiles").own_pages(OWN_PAGES), move |sys: S| async move {
            maker.make(&sys).await
        })
        .await;
        sys.phase("stat");
        let looker = self.clone();
        run_process(&sys, SpawnOptions::process("stfiles").own_pages(OWN_PAGES), move |sys: S| async move {
            for number in 0..looker.dirs {
                for name in looker.names(&sys, number).await? {
                    sys.stat(name).await?;
                }
            }
            Ok(())
        })
        .await;
        sys.phase("sync");
        sys.sync().await?;
        sys.phase("remove");
        run_process(&sys, SpawnOptions::process("rmfiles").own_pages(OWN_PAGES), move |sys: S| async move {
            for number in 0..self.dirs {
                for name in self.names(&sys, number).await? {
                    sys.unlink(name).await?;
                }
            }
            Ok(())
        })
        .await;
        Ok(())
    }

    /// The files of a directory, which is made if it is not there.
    async fn names<S: Sys>(&self, sys: &S, number: u64) -> sys::Result<impl Iterator<Item = FileName> + use<S>> {
        let dir = sys.mkdir(&format!("t/d{number}")).await?;
        Ok((0..self.files).map(move |number| FileName { dir, number }))
    }

    async fn make<S: Sys>(&self, sys: &S) -> sys::Result<()> {
        for number in 0..self.dirs {
            for name in self.names(sys, number).await? {
                let fd = sys.open(name, OpenMode::Create).await?;
                if self.file_size.0 > 0 {
                    sys.write(fd, Bytes(0), self.file_size).await?;
                }
                sys.close(fd).await?;
            }
        }
        Ok(())
    }
}
