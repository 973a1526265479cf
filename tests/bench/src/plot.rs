//! The plot: rate and processor time by requests in flight.

use std::path::Path;

use plotters::{
    coord::Shift,
    prelude::{
        ChartBuilder, Circle, DrawingArea, IntoDrawingArea, IntoLogRange, LineSeries, PathElement, RGBColor,
        SVGBackend, SeriesLabelPosition, WHITE,
    },
    style::{BLACK, Color},
};

use crate::{
    Outcome,
    rounds::Figure,
    transport::{Figures, IN_FLIGHT, SMALL},
};

/// Draws both charts beside each other.
pub(crate) fn draw(figures: &Figures, path: &Path) -> Outcome<()> {
    let area = SVGBackend::new(path, (1_000, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let (left, right) = area.split_horizontally(500);
    chart(figures, &left, "Thousand requests/s by requests in flight", Figure::Rate, 1e-3)?;
    chart(figures, &right, "CPU microseconds per request by requests in flight", Figure::Cpu, 1.0)?;
    area.present()?;
    Ok(())
}

fn chart(
    figures: &Figures,
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    figure: Figure,
    scale: f64,
) -> Outcome<()> {
    let lines = CLIENTS.map(|(client, color)| (client, color, points(figures, client, figure, scale)));
    let lines = Vec::from_iter(lines.into_iter().filter(|(_, _, points)| !points.is_empty()));
    let values = lines.iter().flat_map(|(_, _, points)| points).map(|(_, value)| *value);
    let top = values.clone().fold(f64::MIN_POSITIVE, f64::max) * 1.2;
    let bottom = values.fold(top, f64::min) / 1.2;
    let most = IN_FLIGHT.iter().copied().max().unwrap_or(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(50)
        .build_cartesian_2d((0.8..most * 1.3).log_scale(), (bottom..top).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y}"))
        .draw()?;
    for (client, color, points) in lines {
        chart
            .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?
            .label(client)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, color.filled())))?;
    }
    // Where the lines are not: rates rise to the right, and costs fall.
    let place = if figure == Figure::Rate {
        SeriesLabelPosition::LowerRight
    } else {
        SeriesLabelPosition::UpperRight
    };
    chart.configure_series_labels().position(place).background_style(WHITE).border_style(BLACK).draw()?;
    Ok(())
}

fn points(figures: &Figures, client: &str, figure: Figure, scale: f64) -> Vec<(f64, f64)> {
    let here = figures.grid.iter().filter(|rounds| (rounds.cell.body, rounds.cell.workers) == (SMALL, 1));
    here.filter_map(|rounds| {
        let value = rounds.figure(client, figure)?.median * scale;
        Some((rounds.cell.in_flight as f64, value))
    })
    .collect()
}

const CLIENTS: [(&str, RGBColor); 4] = [
    ("raw", RGBColor(0x77, 0x77, 0x77)),
    ("raw-full", RGBColor(0xd9, 0x80, 0x1a)),
    ("ours", RGBColor(0x1f, 0x6f, 0xb4)),
    ("published", RGBColor(0xb0, 0x30, 0x60)),
];
