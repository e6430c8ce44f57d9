//! Whose format the files of `/proc` have.

use serde::{Deserialize, Serialize};

/// A format of `/proc/vmstat` (its names and their order) and of the files beside it, named after a kernel that prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
pub enum Era {
    /// Linux 3.19.
    #[serde(rename = "3.19")]
    V3_19,
    /// Linux 4.20.
    #[serde(rename = "4.20")]
    V4_20,
    /// Linux 6.12.
    #[serde(rename = "6.12")]
    V6_12,
}

impl Era {
    /// All that there are, the oldest first.
    pub const ALL: [Era; 3] = [Era::V3_19, Era::V4_20, Era::V6_12];

    /// As a kernel's file names it.
    pub fn name(self) -> &'static str {
        match self {
            Era::V3_19 => "3.19",
            Era::V4_20 => "4.20",
            Era::V6_12 => "6.12",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    #[test]
    fn an_era_is_read_by_its_name() {
        for era in Era::ALL {
            let name: StrDeserializer<'_, Error> = era.name().into_deserializer();
            assert_eq!(Era::deserialize(name), Ok(era));
        }
    }
}
