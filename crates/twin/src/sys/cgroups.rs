//! Memory cgroups.

use mm::memcg::{MemcgError, ROOT, UNLIMITED};
use sys::{Cgroup, CgroupLimit, Result, SysError};
use units::{Bytes, MemcgId};

use super::SysTwin;
use crate::snapshot;

impl SysTwin {
    /// Makes a group, and those above it that are missing.
    pub(super) async fn make_cgroup(&self, path: &str) -> Result<Cgroup> {
        if path.is_empty() || path.split('/').any(str::is_empty) {
            return Err(SysError::Invalid);
        }
        self.task.mm(|mm, _| {
            let mut group = ROOT;
            for (at, _) in path.match_indices('/').chain([(path.len(), "")]) {
                group = match mm.memcg_create(group, &path[..at]) {
                    Ok(made) => made,
                    Err(MemcgError::Exists) => mm.memcg.find(&path[..at]).expect("it exists"),
                    Err(MemcgError::TooMany) => return Err(SysError::NoSpace),
                    Err(MemcgError::TooLate | MemcgError::ZoneLists) => return Err(SysError::NotSupported),
                };
            }
            Ok(Cgroup(u32::from(group.0)))
        })
    }

    fn memcg(&self, group: Cgroup) -> Result<MemcgId> {
        let known = self.task.mm(|mm, _| mm.memcg.ids().find(|id| u32::from(id.0) == group.0));
        known.ok_or(SysError::Invalid)
    }

    pub(super) async fn set_cgroup_limit(&self, group: Cgroup, limit: CgroupLimit, value: Option<Bytes>) -> Result<()> {
        let memcg = self.memcg(group)?;
        let pages = value.map_or(UNLIMITED, |value| value.pages_down().0);
        self.task.mm(|mm, _| {
            let limits = &mut mm.memcg[memcg].limits;
            *match limit {
                CgroupLimit::Min => &mut limits.min,
                CgroupLimit::Low => &mut limits.low,
                CgroupLimit::High => &mut limits.high,
                CgroupLimit::Max => &mut limits.max,
                CgroupLimit::SwapHigh => &mut limits.swap_high,
                CgroupLimit::SwapMax => &mut limits.swap_max,
            } = pages;
        });
        Ok(())
    }

    pub(super) async fn enter_cgroup(&self, group: Cgroup) -> Result<()> {
        let memcg = self.memcg(group)?;
        self.task.ctx.with(|world, _| world.enter_memcg(self.process, memcg));
        Ok(())
    }

    pub(super) async fn read_cgroup_file(&self, group: Cgroup, file: &str) -> Result<String> {
        let memcg = self.memcg(group)?;
        self.task.mm(|mm, _| snapshot::memcg_file(mm, memcg, file)).ok_or(SysError::NoEntry)
    }
}
