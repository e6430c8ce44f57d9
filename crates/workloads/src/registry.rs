//! The registry: every workload, its parameters and what it measures.

use sys::Sys;

use crate::cgroup_scenarios::CgroupScenario;
use crate::conformance::Conformance;
use crate::fio::FioFile;
use crate::large_copy::LargeCopyTar;
use crate::memcached_fio::MemcachedFio;
use crate::reclaim_writeback::ReclaimWriteback;
use crate::squeeze::Squeeze;
use crate::stress_highalloc::StressHighalloc;
use crate::thpfio3::ThpFio3;
use crate::thpfioscale::ThpFioScale;
use crate::untar2::Untar2;
use crate::wbstrm::WbStrm;
use crate::{
    Param, ParamError, Params, cgroup_scenarios, conformance, fio, large_copy, memcached_fio, reclaim_writeback,
    squeeze, stress_highalloc, thpfio3, thpfioscale, untar2, wbstrm,
};

/// A workload as the command line lists it.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadSpec {
    /// Name.
    pub name: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
}

/// Every workload.
pub const WORKLOADS: &[WorkloadSpec] = &[
    stress_highalloc::SPEC,
    thpfioscale::SPEC,
    thpfio3::SPEC,
    wbstrm::SPEC,
    untar2::SPEC,
    large_copy::SPEC,
    squeeze::SPEC,
    squeeze::CACHE,
    squeeze::ORDER,
    squeeze::BOOST,
    memcached_fio::SPEC,
    reclaim_writeback::SPEC,
    fio::SPEC,
    cgroup_scenarios::HIGH,
    cgroup_scenarios::NOISY,
    cgroup_scenarios::LOW,
    cgroup_scenarios::WRITERS,
    cgroup_scenarios::OOM,
    conformance::SPEC,
];

/// A workload with its parameters, ready to run.
#[derive(Clone, Debug)]
pub enum Workload {
    /// See [`stress_highalloc`].
    StressHighalloc(StressHighalloc),
    /// See [`thpfioscale`].
    ThpFioScale(ThpFioScale),
    /// See [`thpfio3`].
    ThpFio3(ThpFio3),
    /// See [`wbstrm`].
    WbStrm(WbStrm),
    /// See [`untar2`].
    Untar2(Untar2),
    /// See [`memcached_fio`].
    MemcachedFio(MemcachedFio),
    /// See [`large_copy`].
    LargeCopyTar(LargeCopyTar),
    /// See [`reclaim_writeback`].
    ReclaimWriteback(ReclaimWriteback),
    /// See [`squeeze`].
    Squeeze(Squeeze),
    /// See [`fio`].
    Fio(FioFile),
    /// See [`cgroup_scenarios`].
    CgroupScenario(CgroupScenario),
    /// See [`conformance`].
    Conformance(Conformance),
}

impl Workload {
    /// The workload `name` with the given parameters; also returns every parameter's value for the manifest.
    pub fn new(name: &str, given: &[(String, String)]) -> Result<(Workload, Params), ParamError> {
        let spec = WORKLOADS.iter().find(|w| w.name == name).ok_or_else(|| ParamError::UnknownWorkload {
            name: name.to_string(),
            expected: WORKLOADS.iter().map(|w| w.name).collect::<Vec<_>>().join(", "),
        })?;
        let params = Params::new(spec.name, spec.params, given)?;
        let workload = match spec.name {
            "stress-highalloc" => Workload::StressHighalloc(StressHighalloc::from_params(&params)?),
            "thpfioscale" => Workload::ThpFioScale(ThpFioScale::from_params(&params)?),
            "thpfio3" => Workload::ThpFio3(ThpFio3::from_params(&params)?),
            "wbstrm" => Workload::WbStrm(WbStrm::from_params(&params)?),
            "memcached-fio" => Workload::MemcachedFio(MemcachedFio::from_params(&params)?),
            "untar2" => Workload::Untar2(Untar2::from_params(&params)?),
            "largecopytar" => Workload::LargeCopyTar(LargeCopyTar::from_params(&params)?),
            "reclaim-writeback" => Workload::ReclaimWriteback(ReclaimWriteback::from_params(&params)?),
            "squeeze" | "kswapd-cache" | "kswapd-order" | "kswapd-boost" => {
                Workload::Squeeze(Squeeze::from_params(&params)?)
            }
            "fio" => Workload::Fio(FioFile::from_params(&params)?),
            "cgroup-high" => Workload::CgroupScenario(CgroupScenario::High),
            "cgroup-noisy" => Workload::CgroupScenario(CgroupScenario::Noisy),
            "cgroup-low" => Workload::CgroupScenario(CgroupScenario::Low),
            "cgroup-writers" => Workload::CgroupScenario(CgroupScenario::Writers),
            "cgroup-oom" => Workload::CgroupScenario(CgroupScenario::Oom),
            "conformance" => Workload::Conformance(Conformance::from_params(&params)?),
            other => unreachable!("{other} is registered without a constructor"),
        };
        Ok((workload, params))
    }

    /// Whether it uses files.
    pub fn needs_mount(&self) -> bool {
        match self {
            Workload::StressHighalloc(_)
            | Workload::ThpFioScale(_)
            | Workload::ThpFio3(_)
            | Workload::WbStrm(_)
            | Workload::Untar2(_)
            | Workload::LargeCopyTar(_)
            | Workload::MemcachedFio(_)
            | Workload::ReclaimWriteback(_)
            | Workload::Squeeze(_)
            | Workload::Fio(_)
            | Workload::CgroupScenario(_)
            | Workload::Conformance(_) => true,
        }
    }

    /// Runs it to its end.
    pub async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
        match self {
            Workload::StressHighalloc(workload) => workload.run(sys).await,
            Workload::ThpFioScale(workload) => workload.run(sys).await,
            Workload::ThpFio3(workload) => workload.run(sys).await,
            Workload::WbStrm(workload) => workload.run(sys).await,
            Workload::Untar2(workload) => workload.run(sys).await,
            Workload::MemcachedFio(workload) => workload.run(sys).await,
            Workload::LargeCopyTar(workload) => workload.run(sys).await,
            Workload::ReclaimWriteback(workload) => workload.run(sys).await,
            Workload::Squeeze(workload) => workload.run(sys).await,
            Workload::Fio(workload) => workload.run(sys).await,
            Workload::CgroupScenario(workload) => workload.run(sys).await,
            Workload::Conformance(workload) => workload.run(sys).await,
        }
    }
}
