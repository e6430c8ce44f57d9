//! The writeback of each group on each device.

use smallvec::SmallVec;
use units::MemcgId;

use super::{Request, Wb};
use crate::memcg::ROOT;

/// A group's writeback of a device (`struct bdi_writeback`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WbId {
    /// The group whose inodes it writes.
    pub group: MemcgId,
    /// The device.
    pub device: u16,
}

impl WbId {
    /// The root group's, which every device has.
    pub const fn root(device: u16) -> WbId {
        WbId { group: ROOT, device }
    }
}

/// By group and device, as far as they were used.
#[derive(Debug, Default)]
pub(super) struct Wbs(Vec<Vec<Wb>>);

impl Wbs {
    /// One of them, which is new if it was not used.
    pub(super) fn get_mut(&mut self, wb: WbId) -> &mut Wb {
        let (group, device) = (wb.group.index(), usize::from(wb.device));
        if group >= self.0.len() {
            self.0.resize_with(group + 1, Vec::new);
        }
        let of_group = &mut self.0[group];
        if device >= of_group.len() {
            of_group.resize_with(device + 1, Wb::new);
        }
        &mut of_group[device]
    }

    pub(super) fn get(&self, wb: WbId) -> Option<&Wb> {
        self.0.get(wb.group.index())?.get(usize::from(wb.device))
    }

    /// Host bytes of them and of what is asked of their flushers.
    pub(super) fn host_bytes(&self) -> usize {
        let asked = |wb: &Wb| size_of::<Wb>() + wb.requests.capacity() * size_of::<Request>();
        self.0.iter().flatten().map(asked).sum()
    }

    /// All that were used, those of a device one after the other, the root group's first (`bdi->wb_list`).
    pub(super) fn ids(&self) -> SmallVec<[WbId; 8]> {
        let devices = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let all = (0..devices).flat_map(|device| (0..self.0.len()).map(move |group| (group, device)));
        let used = all.filter(|(group, device)| *device < self.0[*group].len());
        used.map(|(group, device)| WbId { group: MemcgId(group as u16), device: device as u16 }).collect()
    }
}

impl std::ops::Index<WbId> for Wbs {
    type Output = Wb;
    #[inline]
    fn index(&self, wb: WbId) -> &Wb {
        &self.0[wb.group.index()][usize::from(wb.device)]
    }
}

impl std::ops::IndexMut<WbId> for Wbs {
    #[inline]
    fn index_mut(&mut self, wb: WbId) -> &mut Wb {
        &mut self.0[wb.group.index()][usize::from(wb.device)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_a_device_follow_each_other_the_roots_first() {
        let mut wbs = Wbs::default();
        let wb = |group, device| WbId { group: MemcgId(group), device };
        for used in [wb(2, 1), wb(0, 0)] {
            wbs.get_mut(used);
        }
        // Group 2 has one for device 0 by now, too.
        assert_eq!(wbs.ids()[..], [wb(0, 0), wb(2, 0), wb(2, 1)]);
        assert!(wbs.get(wb(1, 0)).is_none());
    }
}
