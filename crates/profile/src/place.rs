//! Where keys stand in a TOML text, for errors that name the key's own line and its whole path.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The path of the key whose name or value stands at `span`, such as `cpus.count`; of a table its own. Nothing if there is none,
/// as in a text that is no TOML.
pub(crate) fn path_at(content: &str, span: &Range<usize>) -> Option<String> {
    let root = DeTable::parse(content).ok()?;
    let found = |entry: &Entry<'_>| entry.key == *span || entry.value.span() == *span;
    find(root.get_ref(), "", &found).map(|entry| entry.path)
}

/// Where the value of `key` stands, of which the last word is looked for in the table at `table`. Nothing if there is no such
/// table, or if it has no such key.
pub(crate) fn value_in(content: &str, table: &Range<usize>, key: &str) -> Option<Range<usize>> {
    let root = DeTable::parse(content).ok()?;
    let found = |entry: &Entry<'_>| entry.value.span() == *table && entry.value.get_ref().is_table();
    let entry = find(root.get_ref(), "", &found)?;
    let word = key.rsplit('.').next()?;
    let DeValue::Table(inside) = entry.value.get_ref() else { return None };
    inside.iter().find(|(name, _)| name.get_ref() == word).map(|(_, value)| value.span())
}

/// A key and its value.
struct Entry<'a> {
    path: String,
    key: Range<usize>,
    value: &'a Spanned<DeValue<'a>>,
}

/// The first entry of this table, or of those inside it, that is looked for.
fn find<'a>(table: &'a DeTable<'a>, above: &str, is_it: &dyn Fn(&Entry<'a>) -> bool) -> Option<Entry<'a>> {
    table.iter().find_map(|(name, value)| {
        let path = if above.is_empty() { name.get_ref().to_string() } else { format!("{above}.{}", name.get_ref()) };
        find_in(value, name.span(), path, is_it)
    })
}

/// The same of a value; the elements of an array have its path.
fn find_in<'a>(
    value: &'a Spanned<DeValue<'a>>,
    key: Range<usize>,
    path: String,
    is_it: &dyn Fn(&Entry<'a>) -> bool,
) -> Option<Entry<'a>> {
    let entry = Entry { path, key, value };
    match value.get_ref() {
        // What an array has inside goes before it: the array itself can begin where its first element does.
        DeValue::Array(elements) => {
            let inside = |element| find_in(element, entry.key.clone(), entry.path.clone(), is_it);
            let found = elements.iter().find_map(inside);
            found.or_else(|| is_it(&entry).then_some(entry))
        }
        _ if is_it(&entry) => Some(entry),
        DeValue::Table(table) => find(table, &entry.path, is_it),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "a = 1\n[cpus]\ncount = 2\n[[disk]]\nname = \"x\"\n[disk.device]\ndepth = 3\n[[disk]]\nname = \"y\"\n";

    fn span_of(word: &str) -> Range<usize> {
        let start = TEXT.find(word).unwrap();
        start..start + word.len()
    }

    #[test]
    fn keys_have_the_path_of_their_tables() {
        for (word, path) in
            [("1", "a"), ("a", "a"), ("2", "cpus.count"), ("3", "disk.device.depth"), ("\"y\"", "disk.name")]
        {
            assert_eq!(path_at(TEXT, &span_of(word)).as_deref(), Some(path), "{word}");
        }
        assert_eq!(path_at(TEXT, &(1..2)), None);
        assert_eq!(path_at("a = \n", &(0..1)), None);
    }

    #[test]
    fn a_key_is_found_in_the_table_that_is_meant() {
        let mut disks = TEXT.match_indices("[[disk]]").map(|(start, found)| start..start + found.len());
        let first = disks.next().unwrap();
        assert_eq!(value_in(TEXT, &first, "disk.name"), Some(span_of("\"x\"")));
        assert_eq!(value_in(TEXT, &disks.next().unwrap(), "disk.name"), Some(span_of("\"y\"")));
        assert_eq!(value_in(TEXT, &span_of("[disk.device]"), "disk.device.depth"), Some(span_of("3")));
        assert_eq!(value_in(TEXT, &first, "disk.size"), None);
    }
}
