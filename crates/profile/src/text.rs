//! A TOML text with its name, for errors that point into it.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Spanned;
use units::did_you_mean;

use crate::ProfileError;
use crate::builtin::Kind;
use crate::place;

/// A file's name and content.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) file: String,
    pub(crate) content: String,
}

impl Text {
    /// The built-in file of this name, or the file at that path.
    pub(crate) fn find(kind: &Kind, name: &str) -> Result<Text, ProfileError> {
        if let Some((known, content)) = kind.builtin.iter().find(|(known, _)| *known == name) {
            let file = format!("{}/{known}{}", kind.folder, kind.suffix);
            return Ok(Text { file, content: (*content).to_string() });
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|e| e != "toml") && !path.exists() {
            let known: Vec<&str> = kind.builtin.iter().map(|(known, _)| *known).collect();
            let closest = did_you_mean(name, known.iter().copied());
            let expected = known.join(", ");
            return Err(ProfileError::Unknown { what: kind.what, name: name.to_string(), closest, expected });
        }
        let content = std::fs::read_to_string(path)
            .map_err(|e| ProfileError::Unreadable { file: name.to_string(), reason: e.to_string() })?;
        Ok(Text { file: name.to_string(), content })
    }

    /// What `load` makes of `name`, which stands in this text: a built-in name, or a path from this file's folder.
    pub(crate) fn refer<T>(
        &self,
        kind: &Kind,
        key: &str,
        name: &Spanned<String>,
        load: impl FnOnce(&str) -> Result<T, ProfileError>,
    ) -> Result<T, ProfileError> {
        let is_builtin = kind.builtin.iter().any(|(known, _)| known == name.get_ref());
        let beside = Path::new(&self.file).with_file_name(name.get_ref());
        let path = beside.to_str().filter(|_| !is_builtin && beside.exists()).unwrap_or(name.get_ref());
        load(path).map_err(|error| match error {
            // It names its own place.
            ProfileError::Invalid { .. } => error,
            _ => self.invalid(name.span(), key, error.to_string()),
        })
    }

    /// Reads it as `T`.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, ProfileError> {
        toml::from_str(&self.content).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let message = one_line(error.message());
            // Such an error is at the start of the table, whose line has another key or none.
            let missing = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
            let path = place::path_at(&self.content, &span);
            let key = match (missing, path) {
                (Some(missing), Some(table)) => format!("{table}.{missing}"),
                (Some(missing), None) => missing.to_string(),
                (None, path) => path.unwrap_or_else(|| self.key_at(&span)),
            };
            self.invalid(span, &key, message)
        })
    }

    /// An error at `span`; if a table stands there, in the line of its `key`, as far as it has one.
    pub(crate) fn invalid(&self, span: Range<usize>, key: &str, message: String) -> ProfileError {
        let span = place::value_in(&self.content, &span, key).unwrap_or(span);
        let line = self.content[..span.start.min(self.content.len())].matches('\n').count() + 1;
        ProfileError::Invalid { file: self.file.clone(), line, key: key.to_string(), message }
    }

    /// The key of the line at `span`, or the line itself where it has none.
    fn key_at(&self, span: &Range<usize>) -> String {
        let start = span.start.min(self.content.len());
        let begin = self.content[..start].rfind('\n').map_or(0, |i| i + 1);
        let line = self.content[begin..].lines().next().unwrap_or("");
        line.split('=').next().unwrap_or(line).trim().to_string()
    }
}

fn one_line(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

/// A text as a string of TOML, which Rust's own quotes are not: it has other escapes.
pub fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A scalar as it would be typed after `key=`.
pub(crate) fn typed(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}
