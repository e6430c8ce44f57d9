//! Settings that are compared: a sysctl that is given several times.

/// One of the settings that are compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Variant {
    /// What tells it from the others; empty if there is no other.
    pub(crate) name: String,
    /// All its settings.
    pub(crate) sysctls: Vec<(String, String)>,
}

impl Variant {
    /// A kernel with this setting, as a column is called.
    pub(crate) fn of_kernel(&self, kernel: &str) -> String {
        if self.name.is_empty() { kernel.to_string() } else { format!("{kernel} {}", self.name) }
    }

    /// The same on a machine with settings of its own: of a name that is there twice the later holds.
    pub(crate) fn over(self, machine: &[(String, String)]) -> Variant {
        Variant { sysctls: [machine, &self.sysctls].concat(), name: self.name }
    }
}

/// The settings that `given` stands for: every combination of the values that its names have, in the order in which they
/// were given. A value that is given twice counts once.
pub(crate) fn variants(given: &[(String, String)]) -> Vec<Variant> {
    let mut axes: Vec<(&String, Vec<&String>)> = Vec::new();
    for (name, value) in given {
        match axes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => axes.push((name, vec![value])),
        }
    }
    let mut variants = vec![Variant { name: String::new(), sysctls: Vec::new() }];
    for (name, values) in axes {
        let told = |value: &String, variant: &Variant| match (values.len(), variant.name.as_str()) {
            (1, before) => before.to_string(),
            (_, "") => format!("{name}={value}"),
            (_, before) => format!("{before} {name}={value}"),
        };
        let with = |variant: &Variant, value: &String| Variant {
            name: told(value, variant),
            sysctls: [variant.sysctls.as_slice(), &[(name.clone(), value.clone())]].concat(),
        };
        variants = variants.iter().flat_map(|variant| values.iter().map(|value| with(variant, value))).collect();
    }
    variants
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn named(given: &[(&str, &str)]) -> Vec<(String, usize)> {
        let given: Vec<(String, String)> = given.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        variants(&given).into_iter().map(|variant| (variant.name, variant.sysctls.len())).collect()
    }

    #[test]
    fn a_name_that_is_given_several_times_is_compared() {
        assert_eq!(named(&[]), [(String::new(), 0)]);
        assert_eq!(named(&[("a", "1"), ("b", "2")]), [(String::new(), 2)]);
        assert_eq!(named(&[("a", "1"), ("b", "2"), ("a", "3")]), [("a=1".into(), 2), ("a=3".into(), 2)]);
        assert_eq!(named(&[("a", "1"), ("a", "1")]), [(String::new(), 1)], "the same value again is no other setting");
        let four = named(&[("a", "1"), ("a", "2"), ("b", "3"), ("b", "4")]);
        let names: Vec<&str> = four.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a=1 b=3", "a=1 b=4", "a=2 b=3", "a=2 b=4"]);
    }

    #[test]
    fn a_setting_of_the_machine_holds_where_none_is_given() {
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let machine = vec![pair("a", "1"), pair("b", "2")];
        let [one, two] = &variants(&[pair("b", "3"), pair("b", "4")])[..] else { panic!("two values") };
        let written: BTreeMap<_, _> = one.clone().over(&machine).sysctls.into_iter().collect();
        assert_eq!(written.into_iter().collect::<Vec<_>>(), [pair("a", "1"), pair("b", "3")]);
        assert_eq!(two.clone().over(&machine).name, "b=4");
    }
}
