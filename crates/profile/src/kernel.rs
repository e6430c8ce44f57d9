//! A kernel: the rule in force for each decision, and its defaults of tunables.
//!
//! A derived kernel names its base and states only what differs, each difference with its source.

use indexmap::IndexMap;
use rules::{Era, Rules, TunableError, Tunables};
use serde::{Deserialize, Serialize};
use toml::Spanned;
use units::{Bytes, PAGE_SIZE, PAGEBLOCK_PAGES};

use crate::builtin::KERNEL;
use crate::text::{Text, typed};
use crate::{ProfileError, Size};

/// Longest chain of kernels that are based on each other.
const BASES_MAX: u32 = 16;
/// What x86-64 has addresses for (`KERNEL_IMAGE_SIZE` with randomised addresses).
const IMAGE_MAX: Bytes = Bytes::gib(1);

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
    /// Where its build lies in memory, if that is known.
    pub image: Option<ImageDef>,
    /// Its file with everything filled in that it derives from its bases; it can be loaded again.
    pub text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct KernelFile {
    name: Spanned<String>,
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
    #[serde(default)]
    image: Option<Spanned<ImageDef>>,
}

/// Where the image of one build of a kernel lies in memory that starts in a given state. It is no rule: kernels that are based on this
/// one are other builds.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ImageDef {
    /// Address of the text, that of a pageblock.
    pub start: Size,
    /// Length of the text.
    pub text: Size,
    /// Length of the read-only data.
    pub rodata: Size,
    /// What only boot needs, in the order in which it is freed.
    #[serde(default)]
    pub boot_only: Vec<AddressRange>,
    /// Whether that, and what pads text and read-only data, is free as runs start.
    #[serde(default)]
    pub free: bool,
    /// Which build, and where the figures come from.
    pub source: String,
}

/// Addresses from `start` to before `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AddressRange {
    /// Its first byte, that of a page.
    pub start: Size,
    /// The first byte behind it, that of a page.
    pub end: Size,
}

/// A rule with the source that says so.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RuleChoice {
    rule: Spanned<String>,
    source: String,
}

/// A kernel's file together with its bases, every word of it checked.
#[derive(Serialize)]
struct Whole {
    name: String,
    description: String,
    era: Era,
    omitted: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<ImageDef>,
    tunables: IndexMap<String, toml::Value>,
    rules: IndexMap<String, RuleChoice>,
}

impl Kernel {
    /// The kernel with this name, or in this file.
    ///
    /// # Errors
    /// No such kernel, or its file is malformed or names rules or tunables that do not exist.
    pub fn load(name: &str) -> Result<Kernel, ProfileError> {
        Kernel::read(&Text::find(&KERNEL, name)?)
    }

    pub(crate) fn read(text: &Text) -> Result<Kernel, ProfileError> {
        let whole = Whole::read(text, 0)?;
        let words: toml::Table = whole.rules.iter().map(|(name, choice)| (name.clone(), choice.word())).collect();
        let mut tunables = Tunables::default();
        for (name, value) in &whole.tunables {
            tunables.set(name, &typed(value)).expect("every tunable was checked");
        }
        Ok(Kernel {
            rules: words.try_into().expect("every rule was checked"),
            tunables,
            text: toml::to_string(&whole).expect("a kernel is plain data"),
            name: whole.name,
            description: whole.description,
            era: whole.era,
            omitted: whole.omitted,
            image: whole.image,
        })
    }

    /// Its tunables with some of them set otherwise.
    ///
    /// # Errors
    /// No tunable of that name, or it does not take that value.
    pub fn tunables_with(&self, changes: &[(String, String)]) -> Result<Tunables, TunableError> {
        let mut tunables = self.tunables.clone();
        for (name, value) in changes {
            tunables.set(name, value)?;
        }
        Ok(tunables)
    }
}

impl ImageDef {
    fn checked(text: &Text, image: Spanned<ImageDef>) -> Result<ImageDef, ProfileError> {
        let def = image.get_ref();
        let refused = |key: &str, message: &str| Err(text.invalid(image.span(), key, message.to_string()));
        if def.source.trim().is_empty() {
            return refused("image.source", "an image needs a source");
        }
        if !def.start.0.0.is_multiple_of(u64::from(PAGEBLOCK_PAGES) * PAGE_SIZE) {
            return refused("image.start", "expected the address of a pageblock");
        }
        if [def.start, def.text, def.rodata].iter().any(|size| size.0 > IMAGE_MAX) {
            return refused("image", "expected sizes of 1 GiB at most");
        }
        if !def.boot_only_is_behind() {
            return refused("image.boot-only", "expected whole pages behind the read-only data that do not overlap");
        }
        Ok(image.into_inner())
    }

    /// Whether what only boot needs is pages behind text and read-only data, none of them twice.
    fn boot_only_is_behind(&self) -> bool {
        let block = PAGE_SIZE * u64::from(PAGEBLOCK_PAGES);
        let padded = |size: Size| size.0.0.next_multiple_of(block);
        let mut free_from = self.start.0.0 + padded(self.text) + padded(self.rodata);
        let mut parts = self.boot_only.clone();
        parts.sort_by_key(|part| part.start.0);
        parts.iter().all(|part| {
            let begins_at = std::mem::replace(&mut free_from, part.end.0.0);
            part.is_pages() && part.start.0.0 >= begins_at && part.end.0 <= IMAGE_MAX
        })
    }
}

impl AddressRange {
    fn is_pages(&self) -> bool {
        self.start.0 < self.end.0 && [self.start, self.end].iter().all(|address| address.0.0.is_multiple_of(PAGE_SIZE))
    }
}

impl RuleChoice {
    fn word(&self) -> toml::Value {
        toml::Value::String(self.rule.get_ref().clone())
    }
}

impl Whole {
    fn read(text: &Text, depth: u32) -> Result<Whole, ProfileError> {
        let file: KernelFile = text.parse()?;
        text.check_name("name", &file.name)?;
        let base = file.base.as_ref().map(|base| Whole::of_base(text, base, depth)).transpose()?;
        check_rules(text, &file.rules)?;
        check_tunables(text, &file.tunables)?;
        let image = file.image.map(|image| ImageDef::checked(text, image)).transpose()?;
        let derived = base.is_some();
        let mut whole = Whole {
            name: file.name.into_inner(),
            description: file.description,
            era: required(text, "era", file.era.or(base.as_ref().map(|b| b.era)))?,
            image,
            ..base.unwrap_or_else(Whole::empty)
        };
        whole.omitted.extend(file.omitted);
        whole.tunables.extend(file.tunables.into_iter().map(|(name, value)| (name.into_inner(), value)));
        whole.rules.extend(file.rules.into_iter().map(|(name, choice)| (name.into_inner(), choice)));
        if !derived {
            for decision in decisions().keys() {
                required(text, decision, whole.rules.get(decision))?;
            }
        }
        Ok(whole)
    }

    fn of_base(text: &Text, base: &Spanned<String>, depth: u32) -> Result<Whole, ProfileError> {
        if depth == BASES_MAX {
            let message = format!("kernels are based on each other in a circle, or more than {BASES_MAX} deep");
            return Err(text.invalid(base.span(), "base", message));
        }
        text.refer(&KERNEL, "base", base, |name| Whole::read(&Text::find(&KERNEL, name)?, depth + 1))
    }

    fn empty() -> Whole {
        Whole {
            name: String::new(),
            description: String::new(),
            era: Era::V6_12,
            omitted: Vec::new(),
            image: None,
            tunables: IndexMap::new(),
            rules: IndexMap::new(),
        }
    }
}

/// Every decision with some good word for it.
fn decisions() -> toml::Table {
    toml::Table::try_from(Rules::newest()).expect("rules are plain words")
}

/// What a kernel without a base must state.
fn required<T>(text: &Text, key: &str, value: Option<T>) -> Result<T, ProfileError> {
    let message = || "a kernel without a base states its era and every rule; this one is missing".to_string();
    value.ok_or_else(|| text.invalid(0..0, key, message()))
}

fn check_rules(text: &Text, stated: &IndexMap<Spanned<String>, RuleChoice>) -> Result<(), ProfileError> {
    let known = decisions();
    for (decision, choice) in stated {
        let name = decision.get_ref();
        if !known.contains_key(name) {
            let expected = known.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(text.invalid(decision.span(), name, format!("no such decision: expected one of {expected}")));
        }
        if choice.source.trim().is_empty() {
            return Err(text.invalid(decision.span(), name, "a rule needs a source".to_string()));
        }
        // The word is checked against its enum by putting it into an otherwise good set of rules.
        let mut probe = known.clone();
        probe.insert(name.clone(), choice.word());
        let parsed: Result<Rules, toml::de::Error> = probe.try_into();
        parsed.map_err(|e| text.invalid(choice.rule.span(), name, e.message().to_string()))?;
    }
    Ok(())
}

fn check_tunables(text: &Text, stated: &IndexMap<Spanned<String>, toml::Value>) -> Result<(), ProfileError> {
    for (name, value) in stated {
        Tunables::default()
            .set(name.get_ref(), &typed(value))
            .map_err(|e| text.invalid(name.span(), name.get_ref(), e.to_string()))?;
    }
    Ok(())
}
