//! The reliability plot: what was predicted against what came, and how many signals stand behind.

use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{BLACK, Color, IntoFont, RGBColor, TextStyle, WHITE};

use super::outcomes::Bin;
use super::report::Report;

const SIZE: (u32, u32) = (900, 860);
/// Pixels from the top that the upper chart has.
const UPPER_HEIGHT: u32 = 640;
const LABEL_AREA: u32 = 50;
const FONT: &str = "sans-serif";
const BLUE: RGBColor = RGBColor(31, 89, 158);
const GREY: RGBColor = RGBColor(120, 120, 120);
/// Radius of the largest circle; areas are proportional to signals.
const RADIUS_MAX: f64 = 16.0;
const RADIUS_MIN: f64 = 2.0;
/// Edges of the axes are multiples of this.
const GRID: f64 = 0.02;
/// Half the width of a bin, and of its bar.
const BIN_HALF: f64 = 0.005;
const BAR_HALF: f64 = 0.004;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type PlotError = DrawingAreaErrorKind<std::io::Error>;

/// A bin with signals in it.
struct Point {
    predicted: f64,
    observed: f64,
    /// Middle of the bin; an open one is drawn as wide as the others.
    middle: f64,
    signals: u64,
}

/// The plot of `report` as an SVG document.
///
/// # Errors
/// Where the library fails; nothing here gives it reason to.
pub fn svg(report: &Report) -> Result<String, PlotError> {
    let points: Vec<Point> = report.reliability.iter().filter_map(point).collect();
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (upper, lower) = area.split_vertically(UPPER_HEIGHT);
        let (low, high) = range(&points);
        shares(&upper, report, &points, low, high)?;
        counts(&lower, report, &points, low, high)?;
        area.present()?;
    }
    Ok(svg)
}

fn point(bin: &Bin) -> Option<Point> {
    let (predicted, observed) = (bin.mean_confidence?, bin.hit_rate?);
    let middle = bin.up_to.map(|edge| edge - BIN_HALF).or(bin.above.map(|edge| edge + BIN_HALF))?;
    Some(Point { predicted, observed, middle, signals: bin.signals })
}

/// One range for both axes, so that the diagonal is one. A coin is always inside.
fn range(points: &[Point]) -> (f64, f64) {
    let all = points.iter().flat_map(|point| [point.predicted, point.observed, point.middle]);
    let (low, high) = all.fold((0.5, 0.5), |(low, high): (f64, f64), x| (low.min(x), high.max(x)));
    let margin = GRID / 4.0;
    (((low - margin) / GRID).floor() * GRID, ((high + margin) / GRID).ceil() * GRID)
}

fn font(size: u32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&BLACK)
}

fn shares(
    area: &Area<'_>,
    report: &Report,
    points: &[Point],
    low: f64,
    high: f64,
) -> Result<(), PlotError> {
    let judged = &report.judged;
    let caption = format!(
        "Predicted and observed, {} signals, {} to {}",
        judged.signals, judged.first_date, judged.last_date
    );
    let mut chart = ChartBuilder::on(area)
        .caption(caption, font(22))
        .margin(14)
        .x_label_area_size(LABEL_AREA)
        .y_label_area_size(LABEL_AREA + 24)
        .build_cartesian_2d(low..high, low..high)?;
    mesh(&mut chart, "predicted: mean confidence of the bin", ("observed: share of hits", 2))?;
    let diagonal = PathElement::new(vec![(low, low), (high, high)], GREY.stroke_width(1));
    let coin = PathElement::new(vec![(low, 0.5), (high, 0.5)], GREY.mix(0.6).stroke_width(1));
    chart.draw_series([diagonal, coin])?;
    let aside = |vertical| font(14).color(&GREY).pos(Pos::new(HPos::Right, vertical));
    let near = (high - low) / 100.0;
    chart.draw_series([
        Text::new("as predicted", (high - 6.0 * near, high - 5.0 * near), aside(VPos::Bottom)),
        Text::new("a coin: 0.50", (high - near, 0.5 + near / 2.0), aside(VPos::Bottom)),
    ])?;
    let most = points.iter().map(|point| point.signals).max().unwrap_or(1) as f64;
    chart.draw_series(points.iter().map(|point| {
        let radius = RADIUS_MAX * (point.signals as f64 / most).sqrt();
        let size = radius.max(RADIUS_MIN).round() as u32;
        Circle::new((point.predicted, point.observed), size, BLUE.mix(0.75).filled())
    }))?;
    Ok(())
}

fn counts(
    area: &Area<'_>,
    report: &Report,
    points: &[Point],
    low: f64,
    high: f64,
) -> Result<(), PlotError> {
    let most = points.iter().map(|point| point.signals).max().unwrap_or(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .x_label_area_size(LABEL_AREA)
        .y_label_area_size(LABEL_AREA + 24)
        .build_cartesian_2d(low..high, 0.0..most * 1.2)?;
    let note = format!(
        "predicted. Outcome {} sessions later. Information, not investment advice.",
        report.horizon_sessions
    );
    mesh(&mut chart, &note, ("signals in the bin", 0))?;
    let bar = |point: &Point| {
        let (from, to) = (point.middle - BAR_HALF, point.middle + BAR_HALF);
        Rectangle::new([(from, 0.0), (to, point.signals as f64)], BLUE.mix(0.5).filled())
    };
    chart.draw_series(points.iter().map(bar))?;
    let above = font(12).pos(Pos::new(HPos::Center, VPos::Bottom));
    chart.draw_series(points.iter().map(|point| {
        let at = (point.middle, point.signals as f64 + most * 0.02);
        Text::new(point.signals.to_string(), at, above.clone())
    }))?;
    Ok(())
}

/// Axes; `y` is the description and the places after the point.
fn mesh(chart: &mut Chart<'_, '_>, x: &str, y: (&str, usize)) -> Result<(), PlotError> {
    let (y, places) = y;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.08))
        .label_style(font(14))
        .axis_desc_style(font(16))
        .x_desc(x)
        .y_desc(y)
        .y_labels(if places == 0 { 5 } else { 10 })
        .x_label_formatter(&|share| format!("{share:.2}"))
        .y_label_formatter(&|value| format!("{value:.places$}"))
        .draw()
}
