//! Memory cgroups that the programs are in.
//!
//! Source: `mixed.sh` of f76c83378851: memcached is a service of systemd (`/etc/memcached.conf`), fio and the clients are started from a
//! shell. systemd (systemd.slice(5), pam_systemd(8)) gives a service a group in `system.slice`, a login of root one below `user-0.slice`.
//! Abstracted: no other service and no other login has memory, so that their groups are left out.

use sys::{Cgroup, Sys};

/// How the groups lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Groups {
    /// memcached and fio have one each, side by side; the clients have none.
    Beside,
    /// As systemd makes them.
    Systemd,
}

/// Words for them.
pub(super) const GROUPS: &[(&str, Groups)] = &[("beside", Groups::Beside), ("systemd", Groups::Systemd)];

impl Groups {
    /// The group of memcached's service, with those that it lies in before it.
    fn service(self) -> &'static [&'static str] {
        match self {
            Groups::Beside => &["memcached"],
            Groups::Systemd => &["system.slice", "system.slice/memcached.service"],
        }
    }

    /// That of the shell which starts fio.
    fn shell(self) -> &'static [&'static str] {
        match self {
            Groups::Beside => &["fio"],
            Groups::Systemd => &["user.slice", "user.slice/user-0.slice", "user.slice/user-0.slice/session-1.scope"],
        }
    }

    /// Makes the group of memcached's service.
    pub(super) async fn make_service<S: Sys>(self, sys: &S) -> sys::Result<Cgroup> {
        make(sys, self.service()).await
    }

    /// Makes the group of the shell.
    pub(super) async fn make_shell<S: Sys>(self, sys: &S) -> sys::Result<Cgroup> {
        make(sys, self.shell()).await
    }

    /// The group of memcached's clients, of the shell's.
    pub(super) fn of_clients(self, shell: Cgroup) -> Option<Cgroup> {
        (self == Groups::Systemd).then_some(shell)
    }
}

/// Makes groups, each in the one before; the last one.
async fn make<S: Sys>(sys: &S, path: &[&str]) -> sys::Result<Cgroup> {
    let mut last = sys.cgroup(path[0]).await?;
    for group in &path[1..] {
        last = sys.cgroup(group).await?;
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_lies_in_the_one_before() {
        for (_, groups) in GROUPS {
            for path in [groups.service(), groups.shell()] {
                assert!(!path[0].contains('/'), "the first one lies at the top");
                let parents = path.iter().skip(1).map(|group| group.rsplit_once('/').map(|(parent, _)| parent));
                assert!(parents.eq(path[..path.len() - 1].iter().map(|group| Some(*group))), "{path:?}");
            }
        }
    }
}
