//! What reading a file brings into memory, page by page.

use sys::{Access, Advice, Fd, FileAdvice, FileName, Mapping, OpenMode, Result, Sys};
use units::Bytes;

use super::{pages, truth};

/// Pages of the file: several windows of 32 pages.
const SIZE: u64 = 256;

/// A file of which nothing is in memory, mapped so that residency can be asked for.
async fn cold_file<S: Sys>(sys: &S, name: FileName) -> Result<(Fd, Mapping)> {
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.write(fd, Bytes(0), pages(SIZE)).await?;
    sys.fsync(fd).await?;
    drop_pages(sys, fd).await?;
    let mapping = sys.mmap_file(fd, pages(SIZE)).await?;
    tell(sys, mapping);
    Ok((fd, mapping))
}

/// Drops what is clean. A process that has it mapped would keep it, and nobody has touched the mapping.
async fn drop_pages<S: Sys>(sys: &S, fd: Fd) -> Result<()> {
    sys.fadvise(fd, FileAdvice::DontNeed).await
}

/// How many pages are there, and the first and the last of them.
fn tell<S: Sys>(sys: &S, mapping: Mapping) {
    let there: Vec<u64> = (0..SIZE).filter(|page| sys.mincore(mapping, pages(*page))).collect();
    sys.sample("conformance/pages", there.len() as f64);
    sys.sample("conformance/first", there.first().map_or(-1.0, |page| *page as f64));
    sys.sample("conformance/last", there.last().map_or(-1.0, |page| *page as f64));
}

/// Reads, and waits until what was only begun has ended.
async fn read<S: Sys>(sys: &S, fd: Fd, mapping: Mapping, page: u64, length: Bytes) -> Result<()> {
    sys.read(fd, pages(page), length).await?;
    sys.sleep(units::Nanos::millis(20)).await;
    tell(sys, mapping);
    Ok(())
}

/// From the start, on in order, at random, in order again, and in one large piece.
pub(crate) async fn a_read_brings_its_window<S: Sys>(sys: S) -> Result<()> {
    let dir = sys.mkdir("a_read_brings_its_window").await?;
    let (fd, mapping) = cold_file(&sys, FileName { dir, number: 0 }).await?;
    for page in [0, 1, 2, 3, 4, 8, 9, 15, 16, 100, 101, 102, 103, 200, 60] {
        read(&sys, fd, mapping, page, pages(1)).await?;
    }
    for (number, length) in [(1, pages(2)), (2, pages(7)), (3, pages(33)), (4, Bytes(100))] {
        let (fd, mapping) = cold_file(&sys, FileName { dir, number }).await?;
        read(&sys, fd, mapping, 0, length).await?;
        read(&sys, fd, mapping, length.pages_up().0, length).await?;
    }
    // A first touch of a mapping reads around it.
    let (fd, mapping) = cold_file(&sys, FileName { dir, number: 5 }).await?;
    for page in [128, 129, 100, 0] {
        sys.poke(mapping, pages(page), Access::Read).await?;
        sys.sleep(units::Nanos::millis(20)).await;
        tell(&sys, mapping);
    }
    sys.close(fd).await
}

/// Who says that reads are in order gets twice as much, who says at random no more than was asked for.
pub(crate) async fn advice_is_heeded<S: Sys>(sys: S) -> Result<()> {
    let dir = sys.mkdir("advice_is_heeded").await?;
    for (number, advice) in [FileAdvice::Sequential, FileAdvice::Random, FileAdvice::Normal].into_iter().enumerate() {
        let (fd, mapping) = cold_file(&sys, FileName { dir, number: number as u64 }).await?;
        sys.fadvise(fd, advice).await?;
        for page in [0, 1, 4, 8, 40, 150] {
            read(&sys, fd, mapping, page, pages(1)).await?;
        }
        sys.close(fd).await?;
    }
    // The same of a mapping.
    let (fd, mapping) = cold_file(&sys, FileName { dir, number: 3 }).await?;
    sys.madvise(mapping, Advice::Random).await?;
    for page in [10, 11, 200] {
        sys.poke(mapping, pages(page), Access::Read).await?;
        tell(&sys, mapping);
    }
    // What is dirty is not dropped.
    sys.write(fd, pages(10), pages(1)).await?;
    sys.munmap(mapping).await?;
    drop_pages(&sys, fd).await?;
    let mapping = sys.mmap_file(fd, pages(SIZE)).await?;
    sys.sample("conformance/clean page", truth(sys.mincore(mapping, pages(200))));
    sys.close(fd).await
}
