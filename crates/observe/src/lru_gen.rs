//! `/sys/kernel/debug/lru_gen`: pages by generation. Source: `lru_gen_seq_show()`, mm/vmscan.c, 6.12.

use std::fmt::Write;

use crate::ParseError;
use crate::text::{Line, Lines};

/// One generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Generation {
    /// Its number.
    pub seq: u64,
    /// Age in ms.
    pub age_ms: u64,
    /// Anonymous pages.
    pub anon: u64,
    /// File pages.
    pub file: u64,
}

/// The generations of a cgroup on a node, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LruGenNode {
    /// NUMA node.
    pub node: u32,
    /// Its generations.
    pub generations: Vec<Generation>,
}

/// A cgroup.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LruGenMemcg {
    /// Its number.
    pub id: u32,
    /// Its path below the root.
    pub path: String,
    /// Its nodes.
    pub nodes: Vec<LruGenNode>,
}

/// All cgroups, the root first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LruGenInfo {
    /// The cgroups.
    pub memcgs: Vec<LruGenMemcg>,
}

impl LruGenInfo {
    /// Reads the text of the file; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<LruGenInfo, ParseError> {
        let mut memcgs: Vec<LruGenMemcg> = Vec::new();
        let mut lines = Lines::new(file, text);
        while let Some(line) = lines.take() {
            let mut fields = line.text.split_ascii_whitespace();
            match fields.next() {
                Some("memcg") => memcgs.push(parse_memcg(&line)?),
                Some("node") => {
                    let memcg = memcgs.last_mut().ok_or_else(|| line.error("\"memcg ID PATH\" before it"))?;
                    let node = line.number(fields.next().unwrap_or(""), "the number of a node")?;
                    memcg.nodes.push(LruGenNode { node, generations: Vec::new() });
                }
                _ => {
                    let node = memcgs.last_mut().and_then(|memcg| memcg.nodes.last_mut());
                    let node = node.ok_or_else(|| line.error("\"memcg ID PATH\" and \"node N\" before it"))?;
                    node.generations.push(parse_generation(&line)?);
                }
            }
        }
        Ok(LruGenInfo { memcgs })
    }

    /// The text of the file.
    pub fn write(&self) -> String {
        let mut out = String::new();
        for memcg in &self.memcgs {
            writeln!(out, "memcg {:>5} {}", memcg.id, memcg.path).expect("a String");
            for node in &memcg.nodes {
                writeln!(out, " node {:>5}", node.node).expect("a String");
                for Generation { seq, age_ms, anon, file } in &node.generations {
                    writeln!(out, " {seq:>10} {age_ms:>10} {anon:>10}  {file:>10} ").expect("a String");
                }
            }
        }
        out
    }
}

fn parse_memcg(line: &Line<'_>) -> Result<LruGenMemcg, ParseError> {
    let expected = "\"memcg ID PATH\"";
    let rest = line.text.strip_prefix("memcg ").ok_or_else(|| line.error(expected))?.trim_start();
    let (id, path) = rest.split_once(' ').ok_or_else(|| line.error(expected))?;
    Ok(LruGenMemcg { id: line.number(id, "the number of a cgroup")?, path: path.to_owned(), nodes: Vec::new() })
}

fn parse_generation(line: &Line<'_>) -> Result<Generation, ParseError> {
    match line.numbers(line.text, "a generation's number, age, anonymous and file pages")?[..] {
        [seq, age_ms, anon, file] => Ok(Generation { seq, age_ms, anon, file }),
        _ => Err(line.error("a generation's number, age, anonymous and file pages")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_belongs_to_the_node_and_the_cgroup_above_it() {
        let text = "memcg     1 /\n node     0\n          4       7520        256           2 \nmemcg     2 /w x\n node     1\n";
        let info = LruGenInfo::parse("lru_gen", text).unwrap();
        assert_eq!(info.memcgs[0].nodes[0].generations, [Generation { seq: 4, age_ms: 7520, anon: 256, file: 2 }]);
        assert_eq!((info.memcgs[1].path.as_str(), info.memcgs[1].nodes[0].node), ("/w x", 1));
        assert_eq!(info.write(), text);
    }

    #[test]
    fn what_is_out_of_place_is_told() {
        for (text, line, expected) in [
            (" node     0\n", 1, "\"memcg ID PATH\" before it"),
            (
                "memcg     1 /\n          4       7520        256           2 \n",
                2,
                "\"memcg ID PATH\" and \"node N\" before it",
            ),
            ("memcg     1 /\n node 0\n 4 7520 256\n", 3, "a generation's number, age, anonymous and file pages"),
        ] {
            let error = LruGenInfo::parse("lru_gen", text).unwrap_err();
            assert_eq!((error.line, error.expected.as_str()), (line, expected));
        }
    }
}
