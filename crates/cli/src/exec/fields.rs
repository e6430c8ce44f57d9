//! Fields of trace events with their values.

use observe::FieldValue;
use units::NodeId;

/// A field and its value.
pub(super) type Field = (&'static str, FieldValue);

/// The value of a field by its name.
pub(super) fn among(fields: &[Field]) -> impl Fn(&str) -> Option<FieldValue> {
    |key| fields.iter().find(|(known, _)| *known == key).map(|(_, value)| value.clone())
}

pub(super) fn nid(node: NodeId) -> Field {
    number("nid", node.0)
}

pub(super) fn number(key: &'static str, value: impl Into<i64>) -> Field {
    (key, value.into().into())
}

pub(super) fn count(key: &'static str, value: u64) -> Field {
    (key, (value as i64).into())
}
