//! A TOML text with its name, for errors that point into it.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::ProfileError;

/// A file's name and content.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) file: String,
    pub(crate) content: String,
}

impl Text {
    /// The built-in `name` from `table`, or the file at that path.
    pub(crate) fn find(
        what: &'static str,
        name: &str,
        table: &[(&'static str, &'static str)],
        folder: &str,
    ) -> Result<Text, ProfileError> {
        if let Some((known, content)) = table.iter().find(|(known, _)| *known == name) {
            return Ok(Text { file: format!("{folder}/{known}.toml"), content: (*content).to_string() });
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|e| e != "toml") && !path.exists() {
            let expected = table.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
            return Err(ProfileError::Unknown { what, name: name.to_string(), expected });
        }
        let content = std::fs::read_to_string(path)
            .map_err(|e| ProfileError::Unreadable { file: name.to_string(), reason: e.to_string() })?;
        Ok(Text { file: name.to_string(), content })
    }

    /// Reads it as `T`.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, ProfileError> {
        toml::from_str(&self.content).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            self.invalid(span.clone(), &self.key_at(&span), error.message().to_string())
        })
    }

    /// An error at `span`.
    pub(crate) fn invalid(&self, span: Range<usize>, key: &str, message: String) -> ProfileError {
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
