//! Memory cgroups.

use mm::memcg::{MemcgError, ROOT, UNLIMITED};
use rules::Era;
use sim::Resource;
use sys::{Cgroup, CgroupLimit, Result, SysError};
use units::{Bytes, MemcgId};

use super::SysTwin;
use crate::snapshot;
use crate::task::{flusher, flusher_options};
use crate::world::psi_group;

impl SysTwin {
    /// Makes a group, and those above it that are missing.
    pub(super) async fn make_cgroup(&self, path: &str) -> Result<Cgroup> {
        if path.is_empty() || path.split('/').any(str::is_empty) {
            return Err(SysError::Invalid);
        }
        let (group, flushers) = self.task.ctx.with(|world, ctl| {
            let mut flushers = Vec::new();
            let mut group = world.workload_memcg;
            let above = match group {
                ROOT => String::new(),
                _ => format!("{}/", world.mm.memcg[group].name()),
            };
            for (at, _) in path.match_indices('/').chain([(path.len(), "")]) {
                let name = format!("{above}{}", &path[..at]);
                group = match world.make_memcg(ctl, group, &name) {
                    Ok((made, its)) => {
                        flushers.extend(its);
                        made
                    }
                    Err(MemcgError::Exists) => world.mm.memcg.find(&name).expect("it exists"),
                    Err(MemcgError::TooMany) => return Err(SysError::NoSpace),
                    Err(MemcgError::TooLate | MemcgError::ZoneLists) => return Err(SysError::NotSupported),
                };
            }
            Ok((group, flushers))
        })?;
        let topology = self.task.ctx.with(|_, ctl| ctl.topology().clone());
        for wb in flushers {
            self.task.ctx.spawn(flusher_options(&topology, wb), |ctx| flusher(ctx, wb));
        }
        Ok(Cgroup(u32::from(group.0)))
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
        self.task.ctx.with(|world, ctl| world.enter_memcg(ctl, self.process, memcg));
        Ok(())
    }

    pub(super) async fn read_cgroup_file(&self, group: Cgroup, file: &str) -> Result<String> {
        let memcg = self.memcg(group)?;
        let resource = match file {
            "cpu.pressure" => Some(Resource::Cpu),
            "io.pressure" => Some(Resource::Io),
            "memory.pressure" => Some(Resource::Memory),
            _ => None,
        };
        let text = self.task.ctx.with(|world, ctl| match resource {
            Some(_) if world.era != Era::V6_12 => None,
            Some(resource) => Some(snapshot::pressure(ctl, psi_group(memcg), resource).write()),
            None => {
                if file == "memory.stat" {
                    world.mm.flush_lru_stats();
                }
                snapshot::memcg_file(&world.mm, memcg, file)
            }
        });
        text.ok_or(SysError::NoEntry)
    }
}
