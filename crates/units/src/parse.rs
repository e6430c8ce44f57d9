//! Sizes as people write them.

use std::fmt;

use crate::Bytes;

/// Suffixes of sizes, each a power of 1024; in any case of letters.
const SUFFIXES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tib", 1 << 40),
];

/// Why a text is no number with a suffix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScaleError {
    /// It is not digits and one of the suffixes.
    Malformed,
    /// It is 2^64 or more.
    TooLarge,
}

/// A whole number with one of these suffixes, which are written small here, and each of which multiplies it; blanks may stand before the
/// suffix.
///
/// # Errors
/// It is not that, or does not fit 64 bits.
pub fn parse_scaled(text: &str, suffixes: &[(&str, u64)]) -> Result<u64, ScaleError> {
    let (digits, suffix) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let suffix = suffix.trim().to_ascii_lowercase();
    let factor = suffixes.iter().find(|(name, _)| *name == suffix).map(|(_, factor)| *factor);
    let factor = factor.filter(|_| !digits.is_empty()).ok_or(ScaleError::Malformed)?;
    let number: Option<u64> = digits.parse().ok();
    number.and_then(|number| number.checked_mul(factor)).ok_or(ScaleError::TooLarge)
}

impl Bytes {
    /// Reads `4096`, `64k`, `512 KiB`, `2GiB` or `1TiB`.
    ///
    /// # Errors
    /// It is not that, or does not fit 64 bits.
    pub fn parse(text: &str) -> Result<Bytes, ScaleError> {
        parse_scaled(text, SUFFIXES).map(Bytes)
    }
}

/// With the largest unit that leaves no fraction.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bytes(bytes) = *self;
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        let fits = |(shift, _): &&(u32, &str)| bytes != 0 && bytes.is_multiple_of(1 << shift);
        match units.iter().find(fits) {
            Some((shift, unit)) => write!(f, "{}{unit}", bytes >> shift),
            None => write!(f, "{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4096B", 4096),
            ("64k", 64 << 10),
            ("512 KiB", 512 << 10),
            ("3MiB", 3 << 20),
            ("64GiB", 64 << 30),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(Bytes::parse(text), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_told_from_what_is_too_large() {
        for text in ["", "GiB", "64GB", "-1", "4x", "1.5GiB"] {
            assert_eq!(Bytes::parse(text), Err(ScaleError::Malformed), "{text}");
        }
        assert_eq!(Bytes::parse("18446744073709551615"), Ok(Bytes(u64::MAX)));
        for text in ["18446744073709551616", "16777216TiB"] {
            assert_eq!(Bytes::parse(text), Err(ScaleError::TooLarge), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_as_they_are_read() {
        for text in ["64GiB", "1536MiB", "3TiB", "4KiB", "4097", "0"] {
            assert_eq!(Bytes::parse(text).unwrap().to_string(), text);
        }
    }
}
