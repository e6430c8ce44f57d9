//! A kernel: the rule in force for each decision, and its defaults of tunables.
//!
//! A derived kernel names its base and states only what differs, each difference with its source.

use indexmap::IndexMap;
use rules::{Rules, Tunables};
use serde::Deserialize;
use toml::Spanned;

use crate::text::Text;
use crate::{KERNELS, ProfileError};

/// Which names of `/proc/vmstat` a kernel prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum Era {
    /// As 4.20.
    #[serde(rename = "4.20")]
    V4_20,
    /// As 6.12.
    #[serde(rename = "6.12")]
    V6_12,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Name.
    pub name: String,
    /// What it stands for.
    pub description: String,
    /// Which counter names it prints.
    pub era: Era,
    /// The rule in force for each decision.
    pub rules: Rules,
    /// Its defaults.
    pub tunables: Tunables,
    /// What of this kernel is not modelled.
    pub omitted: Vec<String>,
    /// The files that it was put together from, base first.
    pub text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct KernelFile {
    name: String,
    description: String,
    #[serde(default)]
    base: Option<Spanned<String>>,
    #[serde(default)]
    era: Option<Era>,
    #[serde(default)]
    rules: IndexMap<Spanned<String>, RuleChoice>,
    #[serde(default)]
    tunables: IndexMap<Spanned<String>, toml::Value>,
    #[serde(default)]
    omitted: Vec<String>,
}

/// A rule with the source that says so.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleChoice {
    rule: Spanned<String>,
    source: String,
}

impl Kernel {
    /// The kernel with this name, or in this file.
    ///
    /// # Errors
    /// No such kernel, or its file is malformed or names rules or tunables that do not exist.
    pub fn load(name: &str) -> Result<Kernel, ProfileError> {
        Kernel::read(&Text::find("kernel", name, KERNELS, "kernels")?, 0)
    }

    fn read(text: &Text, depth: u32) -> Result<Kernel, ProfileError> {
        let file: KernelFile = text.parse()?;
        let base = match &file.base {
            Some(base) if depth > 16 => {
                return Err(text.invalid(base.span(), "base", "kernels are based on each other in a circle".into()));
            }
            Some(base) => Some(Kernel::read(
                &Text::find("kernel", base.get_ref(), KERNELS, "kernels")
                    .map_err(|e| text.invalid(base.span(), "base", e.to_string()))?,
                depth + 1,
            )?),
            None => None,
        };
        let rules = merge_rules(text, base.as_ref().map(|b| &b.rules), &file.rules)?;
        let mut tunables = base.as_ref().map(|b| b.tunables.clone()).unwrap_or_default();
        for (name, value) in &file.tunables {
            let plain = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            tunables
                .set(name.get_ref(), &plain)
                .map_err(|e| text.invalid(name.span(), name.get_ref(), e.to_string()))?;
        }
        let era = file.era.or(base.as_ref().map(|b| b.era)).unwrap_or(Era::V6_12);
        let mut omitted = base.as_ref().map(|b| b.omitted.clone()).unwrap_or_default();
        omitted.extend(file.omitted);
        let whole = base.map(|b| b.text + "\n").unwrap_or_default() + &text.content;
        Ok(Kernel { name: file.name, description: file.description, era, rules, tunables, omitted, text: whole })
    }
}

/// The rules of `base` with the stated differences; a kernel without a base must state every rule.
fn merge_rules(
    text: &Text,
    base: Option<&Rules>,
    stated: &IndexMap<Spanned<String>, RuleChoice>,
) -> Result<Rules, ProfileError> {
    let mut table = match base {
        Some(rules) => toml::Table::try_from(rules).expect("rules are plain words"),
        None => toml::Table::new(),
    };
    let known = toml::Table::try_from(Rules::newest()).expect("rules are plain words");
    for (decision, choice) in stated {
        let name = decision.get_ref();
        if !known.contains_key(name) {
            let expected = known.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(text.invalid(decision.span(), name, format!("no such decision: expected one of {expected}")));
        }
        if choice.source.trim().is_empty() {
            return Err(text.invalid(decision.span(), name, "a rule needs a source".to_string()));
        }
        table.insert(name.clone(), toml::Value::String(choice.rule.get_ref().clone()));
        check_choice(text, &known, name, &choice.rule)?;
    }
    if let Some(missing) = known.keys().find(|k| !table.contains_key(*k)) {
        return Err(text.invalid(0..0, missing, "a kernel without a base states every rule; this one is missing".into()));
    }
    Ok(table.try_into().expect("every rule was checked"))
}

/// Checks one word against its enum by putting it into an otherwise good set of rules.
fn check_choice(text: &Text, known: &toml::Table, name: &str, rule: &Spanned<String>) -> Result<(), ProfileError> {
    let mut probe = known.clone();
    probe.insert(name.to_string(), toml::Value::String(rule.get_ref().clone()));
    let parsed: Result<Rules, toml::de::Error> = probe.try_into();
    parsed.map(drop).map_err(|e| text.invalid(rule.span(), name, e.message().to_string()))
}
