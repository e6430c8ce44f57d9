//! Files: sizes, ends and names.

use sys::{Fd, FileName, OpenMode, Result, Sys};
use units::Bytes;

use super::{done, number, size};

pub(crate) async fn reads_end_where_the_file_ends<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("reads_end_where_the_file_ends").await?, number: 0 };
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.sample("conformance/size", size(sys.stat(name).await));
    sys.sample("conformance/read", size(sys.read(fd, Bytes(0), Bytes(10)).await));
    sys.write(fd, Bytes(0), Bytes(10_000)).await?;
    sys.sample("conformance/size", size(sys.stat(name).await));
    for (offset, length) in
        [(0, 10), (0, 10_000), (0, 20_000), (4095, 2), (9_999, 5), (10_000, 1), (12_288, 1), (99_999, 9)]
    {
        sys.sample("conformance/read", size(sys.read(fd, Bytes(offset), Bytes(length)).await));
    }
    // Beyond the end: a hole, then the data.
    sys.write(fd, Bytes(50_000), Bytes(1)).await?;
    sys.sample("conformance/size", size(sys.stat(name).await));
    sys.sample("conformance/read", size(sys.read(fd, Bytes(20_000), Bytes(40_000)).await));
    // A write inside does not move the end.
    sys.write(fd, Bytes(0), Bytes(1)).await?;
    sys.sample("conformance/size", size(sys.stat(name).await));
    sys.fsync(fd).await?;
    sys.close(fd).await
}

pub(crate) async fn truncation_cuts_and_extends<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("truncation_cuts_and_extends").await?, number: 0 };
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.write(fd, Bytes(0), Bytes(12_288)).await?;
    for length in [12_288, 100, 4096, 4097, 0, 20_000] {
        sys.truncate(fd, Bytes(length)).await?;
        sys.sample("conformance/size", size(sys.stat(name).await));
        sys.sample("conformance/read", size(sys.read(fd, Bytes(0), Bytes(30_000)).await));
    }
    sys.sync().await?;
    sys.close(fd).await
}

pub(crate) async fn a_removed_file_lives_until_its_last_close<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("a_removed_file_lives_until_its_last_close").await?, number: 7 };
    let old = sys.open(name, OpenMode::Create).await?;
    sys.write(old, Bytes(0), Bytes(5000)).await?;
    sys.sample("conformance/result", done(sys.unlink(name).await));
    sys.sample("conformance/result", done(sys.unlink(name).await));
    sys.sample("conformance/size", size(sys.stat(name).await));
    sys.sample("conformance/read", size(sys.read(old, Bytes(0), Bytes(9000)).await));
    sys.sample("conformance/result", number(sys.open(name, OpenMode::Existing).await, |_| 0.0));
    let new = sys.open(name, OpenMode::Create).await?;
    sys.sample("conformance/size", size(sys.stat(name).await));
    sys.write(new, Bytes(0), Bytes(3)).await?;
    sys.sample("conformance/read", size(sys.read(old, Bytes(0), Bytes(9000)).await));
    sys.sample("conformance/read", size(sys.read(new, Bytes(0), Bytes(9000)).await));
    sys.close(old).await?;
    sys.sample("conformance/read", size(sys.read(old, Bytes(0), Bytes(1)).await));
    sys.sample("conformance/result", done(sys.close(old).await));
    sys.sample("conformance/size", size(sys.stat(name).await));
    sys.close(new).await
}

pub(crate) async fn missing_files_have_no_entry<S: Sys>(sys: S) -> Result<()> {
    let dir = sys.mkdir("a/b").await?;
    let again = sys.mkdir("a/b").await? == dir;
    sys.sample("conformance/the same directory again", f64::from(u8::from(again)));
    let name = FileName { dir, number: 1_000_000 };
    sys.sample("conformance/result", number(sys.open(name, OpenMode::Existing).await, |_| 0.0));
    sys.sample("conformance/result", size(sys.stat(name).await));
    sys.sample("conformance/result", done(sys.unlink(name).await));
    sys.sample("conformance/result", done(sys.close(Fd(3)).await));
    sys.sample("conformance/result", done(sys.fsync(Fd(3)).await));
    sys.sample("conformance/result", done(sys.write(Fd(3), Bytes(0), Bytes(1)).await));
    Ok(())
}

pub(crate) async fn a_directory_goes_when_it_is_empty<S: Sys>(sys: S) -> Result<()> {
    let above = sys.mkdir("a_directory_goes_when_it_is_empty").await?;
    let dir = sys.mkdir("a_directory_goes_when_it_is_empty/b").await?;
    let files = [0, 1].map(|number| FileName { dir, number });
    for name in files {
        sys.close(sys.open(name, OpenMode::Create).await?).await?;
    }
    // A name that is looked up in vain does not keep it.
    sys.sample("conformance/result", size(sys.stat(FileName { dir, number: 2 }).await));
    for name in files {
        sys.sample("conformance/not empty", done(sys.rmdir(dir).await));
        sys.sample("conformance/unlink", done(sys.unlink(name).await));
    }
    sys.sample("conformance/not empty", done(sys.rmdir(above).await));
    for gone in [dir, dir, above, above, dir] {
        sys.sample("conformance/rmdir", done(sys.rmdir(gone).await));
    }
    Ok(())
}

/// Nor can one be made there, until there is a directory of that name again. What was open stays so.
pub(crate) async fn a_removed_directory_has_no_entries<S: Sys>(sys: S) -> Result<()> {
    const PATH: &str = "a_removed_directory_has_no_entries";
    let dir = sys.mkdir(PATH).await?;
    let names = [0, 1].map(|number| FileName { dir, number });
    let old = sys.open(names[0], OpenMode::Create).await?;
    sys.write(old, Bytes(0), Bytes(5000)).await?;
    sys.unlink(names[0]).await?;
    sys.sample("conformance/rmdir", done(sys.rmdir(dir).await));
    for name in names {
        for mode in [OpenMode::Existing, OpenMode::Create] {
            sys.sample("conformance/open", number(sys.open(name, mode).await, |_| 0.0));
        }
        sys.sample("conformance/stat", size(sys.stat(name).await));
        sys.sample("conformance/unlink", done(sys.unlink(name).await));
    }
    sys.sample("conformance/read", size(sys.read(old, Bytes(0), Bytes(9000)).await));
    sys.sample("conformance/the same directory again", f64::from(u8::from(sys.mkdir(PATH).await? == dir)));
    sys.sample("conformance/stat", size(sys.stat(names[0]).await));
    let new = sys.open(names[0], OpenMode::Create).await?;
    sys.write(new, Bytes(0), Bytes(3)).await?;
    sys.sample("conformance/size", size(sys.stat(names[0]).await));
    sys.sample("conformance/read", size(sys.read(old, Bytes(0), Bytes(9000)).await));
    sys.close(old).await?;
    sys.sample("conformance/rmdir", done(sys.rmdir(dir).await));
    sys.sample("conformance/read", size(sys.read(new, Bytes(0), Bytes(9000)).await));
    sys.close(new).await
}

/// The last page that a file may have, and what lies beyond it.
pub(crate) async fn a_file_has_a_largest_size<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("a_file_has_a_largest_size").await?, number: 0 };
    let fd = sys.open(name, OpenMode::Create).await?;
    for terabytes in [1_u64, 15, 16, 17, 1 << 20] {
        sys.sample("conformance/write", done(sys.write(fd, Bytes(terabytes << 40), Bytes(1)).await));
        sys.sample("conformance/truncate", done(sys.truncate(fd, Bytes((terabytes << 40) + 1)).await));
        sys.sample("conformance/size", size(sys.stat(name).await));
    }
    sys.close(fd).await
}

/// A disk of less than 128 MiB. What is removed can be written again.
pub(crate) async fn a_full_disk_takes_no_more<S: Sys>(sys: S) -> Result<()> {
    const PART: Bytes = Bytes::mib(1);
    let dir = sys.mkdir("a_full_disk_takes_no_more").await?;
    for number in 0..2 {
        let name = FileName { dir, number };
        let fd = sys.open(name, OpenMode::Create).await?;
        let mut written = 0;
        let ended = loop {
            let result = sys.write(fd, Bytes(written), PART).await;
            if result.is_err() || written >= 128 * PART.0 {
                break result;
            }
            written += PART.0;
        };
        sys.sample("conformance/full", done(ended));
        sys.sample("conformance/again", done(sys.write(fd, Bytes(written + PART.0), PART).await));
        sys.sample("conformance/inside", done(sys.write(fd, Bytes(0), PART).await));
        sys.close(fd).await?;
        sys.sample("conformance/unlink", done(sys.unlink(name).await));
        sys.sync().await?;
    }
    Ok(())
}
