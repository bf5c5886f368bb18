//! Cost against size, as an SVG that reads on light and on dark pages.

use std::fmt::Write;

use crate::report::Point;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 60.0;

/// Told apart by those who see fewer colours too; dark enough for white, light enough for black.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#6c71c4"];

pub(crate) fn draw(points: &[Point]) -> String {
    let mut operations: Vec<&str> = Vec::new();
    for point in points {
        if !operations.contains(&point.operation.as_str()) {
            operations.push(&point.operation);
        }
    }
    let mut sizes: Vec<u64> = points.iter().map(|point| point.people).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let (first, last) = (sizes.first().copied().unwrap_or(1) as f64, sizes.last().copied().unwrap_or(10) as f64);
    let most = nice(points.iter().map(|point| point.micros).fold(1.0, f64::max));
    let x = |people: u64| {
        LEFT + (people as f64 / first).ln() / (last / first).ln().max(f64::MIN_POSITIVE) * (WIDTH - LEFT - RIGHT)
    };
    let y = |micros: f64| HEIGHT - BOTTOM - micros / most * (HEIGHT - TOP - BOTTOM);

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <title>CPU time a request against the number of people in the records</title>\n\
         <style>text {{ fill: #777 }} .axis {{ stroke: #888 }} .grid {{ stroke: #888; stroke-opacity: .25 }}</style>\n"
    );
    let mut put = |text: String| {
        // Writing to a string cannot fail.
        let _infallible = writeln!(svg, "{text}");
    };
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for tick in 0..=5 {
        let micros = most * f64::from(tick) / 5.0;
        let at = y(micros);
        put(format!("<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"));
        put(format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", LEFT - 8.0, at + 4.0, plain(micros)));
    }
    put(format!("<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>"));
    put(format!("<line class=\"axis\" x1=\"{LEFT}\" x2=\"{LEFT}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"));
    for people in &sizes {
        let at = x(*people);
        put(format!("<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>", bottom + 20.0, short(*people)));
    }
    put(format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">people in the records</text>",
        (LEFT + right) / 2.0,
        HEIGHT - 12.0
    ));
    put(format!("<text x=\"{LEFT}\" y=\"{}\">CPU time of the server a request, µs</text>", TOP - 16.0));
    for (n, operation) in operations.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let own: Vec<&Point> = points.iter().filter(|point| point.operation == *operation).collect();
        let line: Vec<_> = own.iter().map(|point| format!("{:.1},{:.1}", x(point.people), y(point.micros))).collect();
        put(format!("<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>", line.join(" ")));
        for point in &own {
            let (cx, cy) = (x(point.people), y(point.micros));
            put(format!(
                "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{operation}, {} people: {:.1} µs</title></circle>",
                short(point.people),
                point.micros
            ));
        }
        let at = TOP + 20.0 * n as f64;
        put(format!(
            "<line x1=\"{}\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            right + 20.0,
            right + 40.0
        ));
        put(format!("<text x=\"{}\" y=\"{}\">{operation}</text>", right + 46.0, at + 4.0));
    }
    svg.push_str("</svg>\n");
    svg
}

/// A round number above the value.
fn nice(value: f64) -> f64 {
    let scale = 10_f64.powf(value.log10().floor());
    [1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0].into_iter().map(|step| step * scale).find(|top| *top >= value).unwrap_or(value)
}

fn plain(value: f64) -> String {
    format!("{value:.1}").trim_end_matches(".0").to_owned()
}

pub(crate) fn short(people: u64) -> String {
    match people {
        1_000_000.. => format!("{} M", people / 1_000_000),
        1_000.. => format!("{} k", people / 1_000),
        _ => people.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_gets_its_line() {
        let point = |operation: &str, people, micros| Point { operation: operation.to_owned(), people, micros };
        let svg = draw(&[point("stats", 10_000, 9.0), point("stats", 2_000_000, 10.0), point("invite", 10_000, 40.0)]);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains(">2 M</text>") && svg.ends_with("</svg>\n"));
        assert_eq!((nice(9.0), nice(41.0), nice(100.0)), (10.0, 50.0, 100.0));
    }
}
