//! What a CPU does once a second for its page lists.
//!
//! Rule: lists of zones of other nodes lose a batch once they have not been used for 3 looks; those of the CPU's own
//! node keep their pages. Where lists are auto-tuned, high decays by an eighth and what is above it goes back.
//! Source: `refresh_cpu_vm_stats()`, `vmstat_update()`, mm/vmstat.c, `drain_zone_pages()`, mm/page_alloc.c (4.20; 6.12);
//! `decay_pcp_high()` (6.12).
//! Since/until: in 4.20 counting down alone does not make the worker run again, so that it stops on a CPU that does
//! nothing; it goes on under the later rules. Decay since 6.7 (`PcpLists::AutoTuned`).
//! Abstracted: that a counter of the zone changed is that a page came to or went from its list. The worker runs on the
//! second on every CPU; the kernel's is deferred on idle CPUs until they wake up. Its CPU time is that of the draining.

use rules::PcpLists;
use units::{CpuId, ZoneId};

use crate::Mm;

/// Looks without use until pages of a remote node go back.
const EXPIRE: u8 = 3;

impl Mm {
    /// The vmstat worker of every CPU runs.
    pub fn vmstat_update(&mut self) {
        for cpu in (0..self.pcps.nr_cpus()).map(|cpu| CpuId(cpu as u16)) {
            self.refresh_cpu_vm_stats(cpu);
        }
    }

    fn refresh_cpu_vm_stats(&mut self, cpu: CpuId) {
        let zones = (0..self.zones.len()).map(|zone| ZoneId(zone as u8));
        let rule = self.rules.pcp_lists;
        if rule == PcpLists::OrderZero && !zones.clone().any(|zone| self.pcps.of(cpu, zone).used) {
            return;
        }
        for zone in zones {
            let pcp = self.pcps.of(cpu, zone);
            if std::mem::take(&mut pcp.used) {
                pcp.expire = EXPIRE;
            }
            if rule == PcpLists::AutoTuned {
                let excess = pcp.decay_high();
                if excess > 0 {
                    self.drain_pcp_zone(cpu, zone, excess);
                }
            }
            self.expire_remote(cpu, zone);
        }
    }

    fn expire_remote(&mut self, cpu: CpuId, zone: ZoneId) {
        let remote = self.zones[zone.index()].node != self.pcps.node_of(cpu);
        let batch = self.zones[zone.index()].pcp_limits.batch;
        let pcp = self.pcps.of(cpu, zone);
        if pcp.expire == 0 || pcp.count == 0 {
            return;
        }
        if !remote {
            pcp.expire = 0;
            return;
        }
        pcp.expire -= 1;
        if pcp.expire == 0 {
            let pages = pcp.count.min(batch);
            self.drain_pcp_zone(cpu, zone, pages);
        }
    }
}
