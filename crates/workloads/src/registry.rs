//! The registry: every workload, its parameters and what it measures.

use sys::Sys;
use units::did_you_mean;

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

/// A line for each program: where it is, the workloads that it is with other defaults or other steps, and when it makes memory
/// cgroups, if it ever does.
macro_rules! programs {
    ($($module:ident::$program:ident [$($spec:ident),+] $(cgroups if $makes_cgroups:expr)?;)*) => {
        /// Every workload.
        pub const WORKLOADS: &[WorkloadSpec] = &[$($($module::$spec),+),*];

        /// A workload with its parameters, ready to run.
        #[derive(Clone, Debug)]
        pub enum Workload {
            $(
                #[doc = concat!("See `", stringify!($module), "`.")]
                $program($module::$program),
            )*
        }

        impl Workload {
            fn from_params(params: &Params) -> Result<Workload, ParamError> {
                $(
                    if [$($module::$spec.name),+].contains(&params.workload()) {
                        return $module::$program::from_params(params).map(Workload::$program);
                    }
                )*
                unreachable!("{} is registered without a program", params.workload())
            }

            /// Whether it makes memory cgroups of version 2.
            pub fn makes_cgroups(&self) -> bool {
                match self {
                    $(Workload::$program(_program) => [$($makes_cgroups(_program))?].contains(&true),)*
                }
            }

            /// Runs it to its end.
            pub async fn run<S: Sys>(self, sys: S) -> sys::Result<()> {
                match self {
                    $(Workload::$program(program) => program.run(sys).await,)*
                }
            }
        }
    };
}

programs! {
    stress_highalloc::StressHighalloc [SPEC];
    thpfioscale::ThpFioScale [SPEC];
    thpfio3::ThpFio3 [SPEC];
    wbstrm::WbStrm [SPEC] cgroups if wbstrm::WbStrm::is_limited;
    untar2::Untar2 [SPEC];
    large_copy::LargeCopyTar [SPEC];
    squeeze::Squeeze [SPEC, CACHE, ORDER, BOOST] cgroups if squeeze::Squeeze::has_containers;
    memcached_fio::MemcachedFio [SPEC] cgroups if |_| true;
    reclaim_writeback::ReclaimWriteback [SPEC];
    fio::FioFile [SPEC];
    cgroup_scenarios::CgroupScenario [HIGH, NOISY, LOW, WRITERS, OOM] cgroups if |_| true;
    conformance::Conformance [SPEC] cgroups if conformance::Conformance::has_cgroups;
}

impl Workload {
    /// The workload `name` with the given parameters; also returns every parameter's value for the manifest.
    ///
    /// # Errors
    /// There is no such workload, or it does not take these parameters.
    pub fn new(name: &str, given: &[(String, String)]) -> Result<(Workload, Params), ParamError> {
        let spec = WORKLOADS.iter().find(|w| w.name == name).ok_or_else(|| ParamError::UnknownWorkload {
            name: name.to_string(),
            closest: did_you_mean(name, WORKLOADS.iter().map(|workload| workload.name)),
            expected: WORKLOADS.iter().map(|w| w.name).collect::<Vec<_>>().join(", "),
        })?;
        let params = Params::new(spec.name, spec.params, given)?;
        Ok((Workload::from_params(&params)?, params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn makes_cgroups(name: &str, params: &[(&str, &str)]) -> bool {
        let params: Vec<(String, String)> = params.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Workload::new(name, &params).unwrap().0.makes_cgroups()
    }

    #[test]
    fn every_workload_has_a_name_of_its_own_and_runs_with_its_defaults() {
        for (nth, spec) in WORKLOADS.iter().enumerate() {
            assert!(WORKLOADS[..nth].iter().all(|other| other.name != spec.name), "{}", spec.name);
            // fio has no default: a job file is its parameter.
            assert_eq!(Workload::new(spec.name, &[]).is_ok(), spec.name != "fio", "{}", spec.name);
        }
    }

    #[test]
    fn a_workload_makes_cgroups_if_its_parameters_say_so() {
        for (name, params, expected) in [
            ("cgroup-oom", &[][..], true),
            ("memcached-fio", &[], true),
            ("untar2", &[], false),
            ("squeeze", &[], false),
            ("squeeze", &[("containers", "1")], true),
            ("kswapd-boost", &[], true),
            ("wbstrm", &[], false),
            ("wbstrm", &[("memory-high", "64MiB")], true),
            ("conformance", &[], true),
            ("conformance", &[("program", "limits_are_whole_pages")], true),
            ("conformance", &[("program", "missing_files_have_no_entry")], false),
        ] {
            assert_eq!(makes_cgroups(name, params), expected, "{name} {params:?}");
        }
    }
}
