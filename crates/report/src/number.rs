//! Numbers in tables.

/// What a table shows where there is no number.
pub(crate) const NOTHING: &str = "-";

/// A number with about four to five digits that matter: `804694`, `2349.7`, `62.05`, `0.0012`; `-` for none.
pub fn format_number(value: Option<f64>) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else {
        return NOTHING.to_owned();
    };
    let decimals = match value.abs() {
        0.0 => 0,
        size if size >= 10_000.0 => 0,
        size if size >= 1_000.0 => 1,
        size if size >= 0.1 => 2,
        size if size >= 0.0001 => 4,
        _ => return format!("{value:.2e}"),
    };
    let text = format!("{value:.decimals$}");
    if value.fract() == 0.0 { format!("{value:.0}") } else { text }
}

/// An effect in percent with its sign: `+12.3%`; `-` for none.
pub fn format_effect(effect_pct: Option<f64>) -> String {
    match effect_pct.filter(|effect| effect.is_finite()) {
        Some(effect) if effect.abs() >= 10_000.0 => format!("{effect:+.2e}%"),
        // Adding 0.0 turns -0.0 into 0.0.
        Some(effect) => format!("{:+.1}%", (effect * 10.0).round() / 10.0 + 0.0),
        None => NOTHING.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_that_matter() {
        let shown = [
            (804_694.4, "804694"),
            (2349.73, "2349.7"),
            (62.049, "62.05"),
            (0.1234, "0.12"),
            (0.00123, "0.0012"),
            (0.0000012, "1.20e-6"),
            (0.0, "0"),
            (37.0, "37"),
            (-5.5, "-5.50"),
        ];
        for (value, text) in shown {
            assert_eq!(format_number(Some(value)), text);
        }
        assert_eq!(format_number(None), "-");
        assert_eq!(format_number(Some(f64::NAN)), "-");
    }

    #[test]
    fn effects_carry_their_sign() {
        assert_eq!(format_effect(Some(12.345)), "+12.3%");
        assert_eq!(format_effect(Some(-97.71)), "-97.7%");
        assert_eq!(format_effect(Some(-0.01)), "+0.0%");
        assert_eq!(format_effect(Some(123_456.0)), "+1.23e5%");
        assert_eq!(format_effect(None), "-");
    }
}
