//! A chart as SVG: lines over a common x axis, in the colours of their columns.

use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::{ChartBuilder, Color, IntoDrawingArea, IntoFont, LineSeries, RGBColor, SVGBackend, WHITE};

/// A line of a chart.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Line {
    /// Which column of the comparison it belongs to, from 0.
    pub(crate) column: usize,
    /// In the order of x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// What one chart shows.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x_unit: &'static str,
    pub(crate) y_unit: String,
    pub(crate) lines: Vec<Line>,
}

/// Colours that people with any kind of colour vision tell apart (Okabe and Ito, "Color Universal Design", 2008).
const COLOURS: [(u8, u8, u8); 7] =
    [(0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233), (60, 60, 60)];
/// Width and height of a chart, in pixels.
const SIZE: (u32, u32) = (560, 240);
const MARGIN: u32 = 8;
/// Radius of a point that stands alone, in pixels.
const DOT: u32 = 3;
/// Widths of the lines of the first columns and of the last, in pixels: where lines lie on each other, those below can be seen.
const WIDTHS: (u32, u32) = (4, 1);
/// Room above the largest value, as a share of all values.
const HEADROOM: f64 = 0.04;
/// Room for the numbers of the axes, in pixels.
const LEFT: u32 = 52;
const BELOW: u32 = 34;
const FONT: &str = "sans-serif";
const LABEL_PX: u32 = 12;
const TITLE_PX: u32 = 15;

/// The colour of a column as CSS has it.
pub(crate) fn css_colour(column: usize) -> String {
    let (red, green, blue) = COLOURS[column % COLOURS.len()];
    format!("rgb({red},{green},{blue})")
}

impl Chart {
    /// Whether there is anything to see: a value that is not 0.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.iter().flat_map(|line| &line.points).all(|(_, y)| *y == 0.0)
    }

    /// The chart as an `svg` element.
    pub(crate) fn svg(&self) -> String {
        let mut out = String::new();
        // A string takes whatever is written to it, and the axes have a length.
        self.draw(SVGBackend::with_string(&mut out, SIZE)).expect("drawing into a string does not fail");
        out
    }

    fn draw(&self, backend: SVGBackend<'_>) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let area = backend.into_drawing_area();
        area.fill(&WHITE)?;
        let (x, mut y) = (self.range(|(x, _)| x), self.range(|(_, y)| y));
        y.end += (y.end - y.start) * HEADROOM;
        let mut chart = ChartBuilder::on(&area)
            .caption(format!("{}, {}", self.title, self.y_unit), (FONT, TITLE_PX).into_font())
            .margin(MARGIN)
            .x_label_area_size(BELOW)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .label_style((FONT, LABEL_PX).into_font())
            .x_desc(self.x_unit)
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| short(*value))
            .draw()?;
        let last = self.lines.iter().map(|line| line.column).max().unwrap_or(0);
        for line in &self.lines {
            let (red, green, blue) = COLOURS[line.column % COLOURS.len()];
            let style = RGBColor(red, green, blue).stroke_width(width(line.column, last));
            // A single point makes no line.
            let dot = if line.points.len() == 1 { DOT } else { 0 };
            chart.draw_series(LineSeries::new(line.points.iter().copied(), style.filled()).point_size(dot))?;
        }
        area.present()
    }

    /// From 0, or less, to the largest value; never empty.
    fn range(&self, of: impl Fn((f64, f64)) -> f64) -> std::ops::Range<f64> {
        let values = || self.lines.iter().flat_map(|line| &line.points).map(|point| of(*point));
        let low = values().fold(0.0, f64::min);
        let high = values().fold(low, f64::max);
        low..if high > low { high } else { low + 1.0 }
    }
}

/// Width of the lines of a column among those up to `last`, in pixels.
fn width(column: usize, last: usize) -> u32 {
    let (first, least) = WIDTHS;
    first.min(least.saturating_add((last - column) as u32))
}

/// A number with three digits at most, and a letter for thousands and more.
fn short(value: f64) -> String {
    let (scaled, letter) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match scaled.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let digits = format!("{scaled:.decimals$}");
    let digits = if decimals > 0 { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(lines: Vec<Line>) -> Chart {
        Chart { title: "Page faults".into(), x_unit: "seconds", y_unit: "a second".into(), lines }
    }

    #[test]
    fn a_line_has_its_columns_colour() {
        let svg = chart(vec![Line { column: 1, points: vec![(0.0, 0.0), (1.0, 5.0)] }]).svg();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("#D55E00") && svg.contains("Page faults, a second"), "{svg}");
        assert_eq!(css_colour(1), "rgb(213,94,0)");
    }

    #[test]
    fn a_point_alone_is_a_dot_and_one_of_many_is_not() {
        let dots = |points: &[(f64, f64)]| {
            let svg = chart(vec![Line { column: 0, points: points.to_vec() }]).svg();
            svg.matches("<circle").count()
        };
        assert_eq!((dots(&[(1.0, 5.0)]), dots(&[(0.0, 1.0), (1.0, 5.0)])), (1, 0));
    }

    #[test]
    fn nothing_but_zeros_is_empty_and_can_be_drawn_nonetheless() {
        let zeros = chart(vec![Line { column: 0, points: vec![(0.0, 0.0), (1.0, 0.0)] }]);
        assert!(zeros.is_empty() && chart(Vec::new()).is_empty());
        assert!(zeros.svg().contains("</svg>") && chart(Vec::new()).svg().contains("</svg>"));
    }

    #[test]
    fn numbers_of_the_axes_are_short() {
        let numbers = [0.0, 0.5, 2.25, 12.5, 150.0, 1500.0, 62_000_000.0, 2.5e9, -1500.0];
        let shown = numbers.map(short);
        assert_eq!(shown, ["0", "0.5", "2.25", "12.5", "150", "1.5k", "62M", "2.5G", "-1.5k"]);
        // Steps add up to these in binary fractions.
        let steps = [0.1 + 0.2, 0.1 * 8.0, 0.2 * 8.0, 0.1 * 3.0 + 0.7, 100.0, 20.0];
        assert_eq!(steps.map(short), ["0.3", "0.8", "1.6", "1", "100", "20"]);
    }

    #[test]
    fn lines_of_earlier_columns_can_be_seen_below_others() {
        let widths = |last: usize| (0..=last).map(|column| width(column, last)).collect::<Vec<_>>();
        assert_eq!((widths(0), widths(1), widths(5)), (vec![1], vec![2, 1], vec![4, 4, 4, 3, 2, 1]));
    }
}
