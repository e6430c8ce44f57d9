//! `/proc/slabinfo`. Source: `cache_show()`, mm/slab_common.c, 6.12; version 2.1 of the format.

use std::fmt::Write;

use crate::ParseError;
use crate::text::{Line, Lines};

const VERSION: &str = "slabinfo - version: 2.1";
const HEAD: &str = "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> \
    : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>";

/// One slab cache.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SlabCache {
    /// `dentry`, `kmalloc-64`, ...
    pub name: String,
    /// Objects in use.
    pub active_objs: u64,
    /// Objects in use and free.
    pub num_objs: u64,
    /// Bytes per object with its metadata.
    pub objsize_bytes: u64,
    /// Objects per slab.
    pub objperslab: u64,
    /// Pages per slab.
    pub pagesperslab: u64,
    /// `limit`, `batchcount` and `sharedfactor`; zeros with SLUB.
    pub tunables: [u64; 3],
    /// Slabs with objects in use.
    pub active_slabs: u64,
    /// Slabs.
    pub num_slabs: u64,
    /// Free objects in arrays that CPUs share; 0 with SLUB.
    pub shared_avail: u64,
}

/// All slab caches, in the kernel's order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Slabinfo {
    /// The caches.
    pub caches: Vec<SlabCache>,
}

impl Slabinfo {
    /// Reads the text of `/proc/slabinfo`; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Slabinfo, ParseError> {
        let mut lines = Lines::new(file, text);
        let version = lines.require(VERSION)?;
        if version.text != VERSION {
            return Err(version.error(VERSION));
        }
        let head = lines.require("the line of column names")?;
        if !head.text.starts_with("# name") {
            return Err(head.error("the line of column names"));
        }
        let mut caches = Vec::new();
        while let Some(line) = lines.take() {
            caches.push(parse_cache(line)?);
        }
        Ok(Slabinfo { caches })
    }

    /// The text of `/proc/slabinfo`.
    pub fn write(&self) -> String {
        let mut out = format!("{VERSION}\n{HEAD}\n");
        for cache in &self.caches {
            write_cache(&mut out, cache).expect("writing to a String cannot fail");
        }
        out
    }
}

fn parse_cache(line: Line<'_>) -> Result<SlabCache, ParseError> {
    let expected = "\"name N N N N N : tunables N N N : slabdata N N N\"";
    let (cache, rest) = line.text.split_once(" : tunables ").ok_or_else(|| line.error(expected))?;
    let (tunables, slabs) = rest.split_once(" : slabdata ").ok_or_else(|| line.error(expected))?;
    let mut fields = cache.split_ascii_whitespace();
    let name = fields.next().ok_or_else(|| line.error(expected))?.to_owned();
    let numbers = fields.map(|field| line.number(field, "a count of the cache"));
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
    let tunables = line.numbers(tunables, "a tunable of the cache")?;
    let slabs = line.numbers(slabs, "a count of slabs")?;
    let (
        &[active_objs, num_objs, objsize_bytes, objperslab, pagesperslab],
        &[limit, batchcount, sharedfactor],
        &[active_slabs, num_slabs, shared_avail],
    ) = (numbers.as_slice(), tunables.as_slice(), slabs.as_slice())
    else {
        return Err(line.error(expected));
    };
    let tunables = [limit, batchcount, sharedfactor];
    Ok(SlabCache {
        name,
        active_objs,
        num_objs,
        objsize_bytes,
        objperslab,
        pagesperslab,
        tunables,
        active_slabs,
        num_slabs,
        shared_avail,
    })
}

fn write_cache(out: &mut String, cache: &SlabCache) -> std::fmt::Result {
    write!(out, "{:<17} {:>6} {:>6} ", cache.name, cache.active_objs, cache.num_objs)?;
    let SlabCache { objsize_bytes, objperslab, pagesperslab, active_slabs, num_slabs, shared_avail, .. } = cache;
    let [limit, batchcount, sharedfactor] = cache.tunables;
    write!(out, "{objsize_bytes:>6} {objperslab:>4} {pagesperslab:>4} : tunables ")?;
    write!(out, "{limit:>4} {batchcount:>4} {sharedfactor:>4} : slabdata ")?;
    writeln!(out, "{active_slabs:>6} {num_slabs:>6} {shared_avail:>6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_line_is_an_error() {
        let text = format!("{VERSION}\n{HEAD}\ndentry 1 2 3 : tunables 0 0 0 : slabdata 1 1 0\n");
        let error = Slabinfo::parse("slabinfo", &text).unwrap_err();
        assert_eq!(error.line, 3);
        assert!(error.expected.starts_with("\"name N N N N N : tunables"));
    }
}
