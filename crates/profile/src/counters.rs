//! Which counters a validation compares, and how far off each group may be: TOML files.

use serde::Deserialize;
use toml::Spanned;

use crate::ProfileError;
use crate::text::Text;

/// The counters that count unless a file says otherwise.
const COUNTERS: &str = include_str!("../../../validation/counters.toml");
const COUNTERS_FILE: &str = "validation/counters.toml";

/// A counter that is compared.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CounterDef {
    /// Its name; the parts by zone are summed.
    pub name: String,
    /// Growth that is as good as nothing, in the counter's unit; above 0.
    pub floor: f64,
    /// Whether the effects of settings on it are told.
    #[serde(default)]
    pub effect: bool,
}

/// How far off a group may be.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Budget {
    /// Name of the group.
    pub group: String,
    /// Median error over the counters that matter, in percent.
    pub median_pct: f64,
    /// 90th percentile of it.
    pub p90_pct: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CounterFile {
    counter: Vec<Spanned<CounterDef>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetFile {
    budget: Vec<Spanned<Budget>>,
}

/// The counters to compare: those of `file`, or the built-in ones.
///
/// # Errors
/// The file cannot be read, names a counter twice, or has a floor that is not above 0.
pub fn counters(file: Option<&str>) -> Result<Vec<CounterDef>, ProfileError> {
    let text = match file {
        Some(file) => read(file)?,
        None => Text { file: COUNTERS_FILE.to_string(), content: COUNTERS.to_string() },
    };
    let file: CounterFile = text.parse()?;
    let mut counters: Vec<CounterDef> = Vec::new();
    for counter in file.counter {
        let (span, counter) = (counter.span(), counter.into_inner());
        if !(counter.floor.is_finite() && counter.floor > 0.0) {
            return Err(text.invalid(span, "floor", format!("{}: expected a number above 0", counter.floor)));
        }
        if counters.iter().any(|known| known.name == counter.name) {
            return Err(text.invalid(span, "name", format!("{}: expected each counter once", counter.name)));
        }
        counters.push(counter);
    }
    Ok(counters)
}

/// The budgets of a file.
///
/// # Errors
/// The file cannot be read, names a group twice, or has a budget that is not a number of percent.
pub fn budgets(file: &str) -> Result<Vec<Budget>, ProfileError> {
    let text = read(file)?;
    let file: BudgetFile = text.parse()?;
    let mut budgets: Vec<Budget> = Vec::new();
    for budget in file.budget {
        let (span, budget) = (budget.span(), budget.into_inner());
        if !(0.0 <= budget.median_pct && budget.median_pct <= budget.p90_pct && budget.p90_pct.is_finite()) {
            return Err(text.invalid(span, "p90-pct", "expected 0 <= median-pct <= p90-pct".to_string()));
        }
        if budgets.iter().any(|known| known.group == budget.group) {
            return Err(text.invalid(span, "group", format!("{}: expected each group once", budget.group)));
        }
        budgets.push(budget);
    }
    Ok(budgets)
}

fn read(file: &str) -> Result<Text, ProfileError> {
    let content = std::fs::read_to_string(file)
        .map_err(|error| ProfileError::Unreadable { file: file.to_string(), reason: error.to_string() })?;
    Ok(Text { file: file.to_string(), content })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_counters_load() {
        assert!(counters(None).unwrap().len() > 20);
    }

    #[test]
    fn bad_files_are_named_with_line_and_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml").to_str().unwrap().to_string();
        let refused = |content: &str| {
            std::fs::write(&path, content).unwrap();
            let found =
                if content.starts_with("[[budget") { budgets(&path).err() } else { counters(Some(&path)).err() };
            found.unwrap().to_string().replace(&path, "F")
        };
        assert_eq!(refused("[[counter]]\nname = \"a\"\nfloor = 0\n"), "F:3: floor: 0: expected a number above 0");
        let twice = "[[counter]]\nname = \"a\"\nfloor = 1\n[[counter]]\nname = \"a\"\nfloor = 1\n";
        assert_eq!(refused(twice), "F:5: name: a: expected each counter once");
        let budget = "[[budget]]\ngroup = \"g\"\nmedian-pct = 5\np90-pct = 4\n";
        assert_eq!(refused(budget), "F:4: p90-pct: expected 0 <= median-pct <= p90-pct");
    }
}
