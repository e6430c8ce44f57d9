//! Recount of the page cache.

use units::{FileId, NodeId, Pfn};

use super::leaf::NODE_SHIFT;
use super::{Slot, slots};
use crate::stat::NodeStat;
use crate::{Frame, Kind, Mm, Violation};

impl Mm {
    /// Checks that slots and frames name each other, and that counters equal a recount.
    pub(crate) fn validate_pagecache(&self, violations: &mut Vec<Violation>) {
        let mut wrong = |pfn: Option<Pfn>, what: String| violations.push(Violation { place: "pagecache", pfn, what });
        let trees = &self.pagecache.trees;
        let mut slots_in_use = 0u64;
        for file in 0..trees.nr_files() {
            let mut pages = 0;
            let mut from = Some(0);
            let mut dirty = trees.next_dirty(file, 0);
            while let Some((index, raw)) = from.and_then(|at| trees.next_entry(file, at)) {
                from = index.checked_add(1);
                if let Some(leaf) = trees.leaf_at(trees.root_of(file), index >> NODE_SHIFT)
                    && trees.leaves.share(leaf.id) != self.shadow_share(trees.leaves[leaf.id].obj)
                {
                    wrong(
                        None,
                        format!("the node of file {file} at {index} is of another group or node than its object"),
                    );
                }
                let Slot::Page(pfn) = slots::unpack(raw) else { continue };
                pages += 1;
                let frame = &self.frames[pfn];
                let home = (frame.kind() == Kind::File).then(|| trees.home(frame.place));
                let holds =
                    |(owner, first): (u32, u32)| owner == file && (first..first + frame.nr_pages()).contains(&index);
                if !home.is_some_and(holds) {
                    wrong(Some(pfn), format!("is in slot {index} of file {file}, and says {frame:?}"));
                }
                if dirty.is_some_and(|tagged| tagged < index) {
                    dirty = trees.next_dirty(file, index);
                }
                let tagged = dirty == Some(index);
                let wanted = tagged || frame.nr_pages() > 1 && !self.dirty_indices(pfn).is_empty();
                if frame.has(Frame::DIRTY) != wanted {
                    wrong(Some(pfn), format!("its dirty tag in file {file} at {index} differs from its flag"));
                }
            }
            slots_in_use += u64::from(pages);
            if pages != self.nr_cached(FileId(file)) {
                wrong(None, format!("file {file}: {pages} pages, {} counted", self.nr_cached(FileId(file))));
            }
        }
        // By node: pages of files, and pages of the swap cache, which nr_file_pages counts too.
        let mut per_node = vec![[0u64; 2]; self.nodes.len()];
        for n in 0..self.frames.len() as u32 {
            let frame = &self.frames[Pfn(n)];
            // What is neither may lie between zones, on no node.
            let (kind, pages) = match frame.kind() {
                Kind::File => (0, u64::from(frame.nr_pages())),
                Kind::Anon if frame.has(Frame::SWAPCACHE) => (1, u64::from(frame.nr_pages())),
                _ => continue,
            };
            per_node[self.node_of(Pfn(n)).index()][kind] += pages;
        }
        let of_files: u64 = per_node.iter().map(|counts| counts[0]).sum();
        if of_files != slots_in_use {
            wrong(None, format!("{of_files} frames of files, {slots_in_use} slots"));
        }
        for (node, &[pages, swapcache]) in per_node.iter().enumerate() {
            let gauge = self.stat.node(NodeId(node as u8), NodeStat::FilePages);
            if gauge != pages + swapcache {
                let what = format!("{pages} frames are page cache, {swapcache} swap cache");
                wrong(None, format!("node {node}: nr_file_pages is {gauge}, {what}"));
            }
            let listed = trees.shadows.len_of_node(node) + self.swap.shadow_nodes(NodeId(node as u8));
            let gauge = self.stat.node(NodeId(node as u8), NodeStat::WorkingsetNodes);
            if gauge != listed {
                wrong(None, format!("node {node}: workingset_nodes is {gauge}, {listed} are listed"));
            }
        }
    }
}
