//! Sizes as people write them.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use units::Bytes;

/// A number of bytes, written as `"64GiB"`, `"4 MiB"`, `"512KiB"` or a plain number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub Bytes);

impl Size {
    /// Reads a size.
    ///
    /// # Errors
    /// The text is not a number with one of the known suffixes, or does not fit 64 bits.
    pub fn parse(text: &str) -> Result<Size, String> {
        let refused = || format!("`{text}` is not a size such as \"64GiB\", \"512 MiB\" or 4096");
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..digits].parse().map_err(|_| refused())?;
        let shift = match text[digits..].trim() {
            "" | "B" => 0,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            "TiB" => 40,
            _ => return Err(refused()),
        };
        let bytes = number.checked_mul(1 << shift).ok_or_else(refused)?;
        Ok(Size(Bytes(bytes)))
    }
}

/// With the largest unit that leaves no fraction.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size(Bytes(bytes)) = *self;
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        let fits = |(shift, _): &&(u32, &str)| bytes != 0 && bytes % (1 << shift) == 0;
        match units.iter().find(fits) {
            Some((shift, unit)) => write!(f, "{}{unit}", bytes >> shift),
            None => write!(f, "{bytes}"),
        }
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
    fn sizes_are_powers_of_1024() {
        assert_eq!(Size::parse("64GiB"), Ok(Size(Bytes(64 << 30))));
        assert_eq!(Size::parse("512 KiB"), Ok(Size(Bytes(512 << 10))));
        assert_eq!(Size::parse("4096"), Ok(Size(Bytes(4096))));
    }

    #[test]
    fn sizes_are_written_as_they_are_read() {
        for text in ["64GiB", "1536MiB", "3TiB", "4KiB", "4097", "0"] {
            assert_eq!(Size::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_not_a_size_is_named() {
        for bad in ["", "GiB", "64GB", "-1", "99999999TiB"] {
            let error = Size::parse(bad).unwrap_err();
            assert!(error.contains(&format!("`{bad}`")), "{error}");
        }
    }
}
