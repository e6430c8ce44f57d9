//! How far off the twin may be: budgets that can only shrink.

use profile::{Budget, budgets};
use report::ValidationReport;

use crate::failure::Failure;

/// A budget this much above what was measured, in percentage points, is too large: the twin got better, and shall
/// stay so.
const SLACK_PCT: f64 = 2.0;

/// Checks that no budget of a file grew since others, or went.
pub(super) fn check_growth(file: &str, before: &[String]) -> Result<(), Failure> {
    let now = budgets(file)?;
    for earlier in before {
        let grown = grown(&now, &budgets(earlier)?);
        if !grown.is_empty() {
            return Err(Failure::failed(format!("{file}: larger than in {earlier}: {}", grown.join("; "))));
        }
    }
    Ok(())
}

/// What is larger in budgets than it was, or not there any more.
fn grown(now: &[Budget], before: &[Budget]) -> Vec<String> {
    let mut grown = Vec::new();
    for old in before {
        let Some(new) = now.iter().find(|budget| budget.group == old.group) else {
            grown.push(format!("{}: expected it to stay", old.group));
            continue;
        };
        let parts = [("median-pct", new.median_pct, old.median_pct), ("p90-pct", new.p90_pct, old.p90_pct)];
        for (key, value, limit) in parts {
            if value > limit {
                grown.push(format!("{}: {key}: {value}, expected {limit} at most", old.group));
            }
        }
    }
    grown
}

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

    fn budget(group: &str, median_pct: f64, p90_pct: f64) -> Budget {
        Budget { group: group.to_string(), median_pct, p90_pct }
    }

    #[test]
    fn a_budget_only_shrinks_and_stays() {
        let before = [budget("a", 2.0, 9.0), budget("b", 1.0, 5.0)];
        let now = [budget("new", 50.0, 90.0), budget("b", 1.0, 5.0), budget("a", 1.9, 9.0)];
        assert!(grown(&now, &before).is_empty());
        assert_eq!(
            grown(&[budget("a", 2.1, 8.0), budget("b", 1.0, 5.1)], &before).join("; "),
            "a: median-pct: 2.1, expected 2 at most; b: p90-pct: 5.1, expected 5 at most"
        );
        assert_eq!(grown(&now[..2], &before), ["a: expected it to stay"]);
    }

    #[test]
    fn a_budget_is_kept_and_not_generous() {
        assert_eq!([9.9, 10.0, 12.0].map(|allowed| verdict(allowed, 10.0).is_none()), [false, true, true]);
        assert_eq!(verdict(12.1, 10.0).as_deref(), Some("12.1 is more than is needed: expected 12.0 at most"));
    }
}
