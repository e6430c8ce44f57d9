//! How far off the twin may be: budgets that can only shrink.

use profile::budgets;
use report::ValidationReport;

use crate::failure::Failure;

/// A budget this much above what was measured, in percentage points, is too large: the twin got better, and shall
/// stay so.
const SLACK_PCT: f64 = 2.0;

/// Checks every group of the report against the budgets of a file.
pub(super) fn check(file: &str, report: &ValidationReport) -> Result<(), Failure> {
    let budgets = budgets(file)?;
    let mut broken = Vec::new();
    for group in &report.groups {
        let Some(budget) = budgets.iter().find(|budget| budget.group == group.group) else {
            broken.push(format!("{}: expected a budget", group.group));
            continue;
        };
        let parts = [
            ("median-pct", budget.median_pct, group.median_error_pct),
            ("p90-pct", budget.p90_pct, group.p90_error_pct),
        ];
        for (key, allowed, measured) in parts {
            broken.extend(
                verdict(allowed, measured.unwrap_or(0.0)).map(|what| format!("{}: {key}: {what}", group.group)),
            );
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(Failure::failed(format!("{file}: {}", broken.join("; ")))) }
}

/// What is wrong with a budget.
fn verdict(allowed: f64, measured: f64) -> Option<String> {
    if measured > allowed {
        return Some(format!("{measured:.1} is more than {allowed}"));
    }
    (allowed > measured + SLACK_PCT)
        .then(|| format!("{allowed} is more than is needed: expected {:.1} at most", measured + SLACK_PCT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_kept_and_not_generous() {
        assert_eq!([9.9, 10.0, 12.0].map(|allowed| verdict(allowed, 10.0).is_none()), [false, true, true]);
        assert_eq!(verdict(12.1, 10.0).as_deref(), Some("12.1 is more than is needed: expected 12.0 at most"));
    }
}
