//! Mappings: what is resident, and what is refused.

use sys::{Access, Advice, FileName, OpenMode, Result, Sys};
use units::{Bytes, PAGE_SIZE};

use super::{done, number, pages, resident, size};

pub(crate) async fn memory_is_resident_once_touched<S: Sys>(sys: S) -> Result<()> {
    let mapping = sys.mmap(Bytes::mib(4), Bytes::mib(2)).await?;
    sys.madvise(mapping, Advice::NoHugePage).await?;
    resident(&sys, mapping, 0);
    sys.poke(mapping, Bytes(3 * PAGE_SIZE + 17), Access::Write).await?;
    sys.touch(mapping, pages(8), pages(4), Access::Write).await?;
    sys.touch(mapping, Bytes(20 * PAGE_SIZE - 1), Bytes(2), Access::Read).await?;
    for page in [2, 3, 4, 7, 8, 11, 12, 18, 19, 20, 21] {
        resident(&sys, mapping, page);
    }
    sys.madvise(mapping, Advice::DontNeed).await?;
    for page in [3, 8, 11] {
        resident(&sys, mapping, page);
    }
    sys.munmap(mapping).await
}

pub(crate) async fn bad_mappings_and_ranges_are_invalid<S: Sys>(sys: S) -> Result<()> {
    let sample = |value| sys.sample("conformance/result", value);
    sample(number(sys.mmap(Bytes(0), pages(1)).await, |_| 0.0));
    sample(number(sys.mmap(pages(1), Bytes(100)).await, |_| 0.0));
    let mapping = sys.mmap(pages(4), pages(1)).await?;
    sample(done(sys.touch(mapping, Bytes(0), pages(4), Access::Write).await));
    sample(done(sys.touch(mapping, Bytes(0), Bytes(pages(4).0 + 1), Access::Write).await));
    sample(done(sys.touch(mapping, pages(1), Bytes(0), Access::Write).await));
    sample(done(sys.poke(mapping, pages(4), Access::Read).await));
    sample(done(sys.munmap(mapping).await));
    sample(done(sys.munmap(mapping).await));
    sample(done(sys.poke(mapping, Bytes(0), Access::Read).await));
    sample(done(sys.madvise(mapping, Advice::DontNeed).await));
    resident(&sys, mapping, 0);
    Ok(())
}

pub(crate) async fn a_mapped_file_is_the_file<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("a_mapped_file_is_the_file").await?, number: 0 };
    let fd = sys.open(name, OpenMode::Create).await?;
    sys.sample("conformance/no page", number(sys.mmap_file(fd, Bytes(0)).await, |_| 0.0));
    sys.write(fd, Bytes(0), pages(8)).await?;
    let mapping = sys.mmap_file(fd, pages(8)).await?;
    // Cached is resident, mapped or not.
    resident(&sys, mapping, 7);
    sys.sample("conformance/read", done(sys.touch(mapping, Bytes(0), pages(8), Access::Read).await));
    sys.sample("conformance/store", done(sys.poke(mapping, pages(3), Access::Write).await));
    sys.close(fd).await?;
    sys.sample("conformance/after close", done(sys.poke(mapping, pages(5), Access::Write).await));
    sys.sample("conformance/size", size(sys.stat(name).await));
    sys.sample("conformance/outside", done(sys.poke(mapping, pages(8), Access::Read).await));
    sys.sample("conformance/unmapped", done(sys.munmap(mapping).await));
    sys.sample("conformance/gone", done(sys.poke(mapping, Bytes(0), Access::Read).await));
    let fd = sys.open(name, OpenMode::Existing).await?;
    sys.sample("conformance/read", size(sys.read(fd, Bytes(0), pages(9)).await));
    Ok(())
}

pub(crate) async fn a_write_takes_what_is_mapped<S: Sys>(sys: S) -> Result<()> {
    let name = FileName { dir: sys.mkdir("a_write_takes_what_is_mapped").await?, number: 0 };
    let fd = sys.open(name, OpenMode::Create).await?;
    let source = sys.mmap(pages(4), pages(1)).await?;
    sys.madvise(source, Advice::NoHugePage).await?;
    sys.sample("conformance/too long", done(sys.write_from(fd, Bytes(0), source, Bytes(pages(4).0 + 1)).await));
    sys.sample("conformance/size", size(sys.stat(name).await));
    sys.sample("conformance/nothing", done(sys.write_from(fd, Bytes(0), source, Bytes(0)).await));
    // Across three pages of the file, from the first two of the mapping and a byte of the third.
    sys.sample("conformance/part", done(sys.write_from(fd, Bytes(100), source, Bytes(pages(2).0 + 1)).await));
    sys.sample("conformance/size", size(sys.stat(name).await));
    for page in 0..4 {
        resident(&sys, source, page);
    }
    sys.munmap(source).await?;
    sys.sample("conformance/unmapped", done(sys.write_from(fd, Bytes(0), source, pages(1)).await));
    sys.close(fd).await
}
