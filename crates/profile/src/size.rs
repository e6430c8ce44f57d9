//! Sizes as people write them.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use units::{Bytes, ScaleError};

/// A number of bytes, written as `"64GiB"`, `"4 MiB"`, `"512KiB"` or a plain number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub Bytes);

impl Size {
    /// Reads a size.
    ///
    /// # Errors
    /// The text is not a number with one of the known suffixes, or does not fit 64 bits.
    pub fn parse(text: &str) -> Result<Size, String> {
        let told = |error| match error {
            ScaleError::Malformed => format!("`{text}` is not a size such as \"64GiB\", \"512 MiB\" or 4096"),
            ScaleError::TooLarge => format!("`{text}` is too large: expected less than 2^64 bytes"),
        };
        Bytes::parse(text).map(Size).map_err(told)
    }
}

/// With the largest unit that leaves no fraction.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        struct SizeVisitor;
        impl Visitor<'_> for SizeVisitor {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"64GiB\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                Size::parse(text).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Size, E> {
                u64::try_from(number).map(|n| Size(Bytes(n))).map_err(|_| E::custom("a size is not negative"))
            }
        }
        deserializer.deserialize_any(SizeVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_size_is_named() {
        for bad in ["", "GiB", "64GB", "-1", "99999999TiB"] {
            let error = Size::parse(bad).unwrap_err();
            assert!(error.contains(&format!("`{bad}`")), "{error}");
        }
    }
}
