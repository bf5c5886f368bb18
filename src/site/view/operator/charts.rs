//! Charts as SVG, in four kinds: lines, bars, tiles and steps. Places and lengths are worked out here; a template draws them.
//!
//! Every chart is as wide as a phone, so that its letters can be read there; on a desk it grows. Values are written, for colors alone
//! tell nobody anything.

use super::scale::{compact, part, round_up};
use super::tiles::TileMap;

/// The width of every chart, in its own units.
pub(super) const WIDTH: u64 = 360;

/// The line chart's plot: its height, and the room for the labels of its scale.
const PLOT_HEIGHT: u64 = 150;
const SCALE_WIDTH: u64 = 44;
const TOP: u64 = 14;

/// A row of bars: its text, and below it one thin bar for each part.
const TEXT_HEIGHT: u64 = 18;
pub(super) const BAR_HEIGHT: u64 = 9;
const ROW_GAP: u64 = 12;

/// Letters of a label and its value that fit beside each other, and those that a label always has.
const ROW_LETTERS: usize = 38;
const FEWEST_LETTERS: usize = 12;

/// A chart, ready to be drawn.
#[derive(Debug)]
pub(super) enum Chart {
    Lines(LineChart),
    Bars(BarChart),
    Tiles(TileMap),
    Steps(StepChart),
}

impl Chart {
    pub(super) fn height(&self) -> u64 {
        match self {
            Self::Lines(_) => TOP + PLOT_HEIGHT + 24,
            Self::Bars(chart) => chart.height,
            Self::Tiles(_) => TileMap::HEIGHT,
            Self::Steps(chart) => chart.height,
        }
    }
}

#[derive(Debug)]
pub(super) struct LineChart {
    /// "x,y x,y …"
    pub(super) line: String,
    /// The same, down to the base line.
    pub(super) area: String,
    /// Lines of the scale, and what they say.
    pub(super) scale: Vec<(u64, String)>,
    pub(super) left: u64,
    pub(super) right: u64,
    pub(super) base: u64,
    pub(super) first: String,
    pub(super) last: String,
    /// Where the last point is.
    pub(super) end: (u64, u64),
}

/// A line through values, in their order; the first and the last are labeled.
pub(super) fn lines(points: &[(String, u64)]) -> Chart {
    let most = round_up(points.iter().map(|(_, value)| *value).max().unwrap_or(0));
    let (left, right, base) = (SCALE_WIDTH, WIDTH - 6, TOP + PLOT_HEIGHT);
    let up = |value| base - part(value, most, PLOT_HEIGHT);
    let across = |n: usize| left + part(n as u64, points.len().saturating_sub(1) as u64, right - left);
    let mut places: Vec<_> = points.iter().enumerate().map(|(n, (_, value))| (across(n), up(*value))).collect();
    if let [only] = places[..] {
        // One point is a line as well.
        places.push((right, only.1));
    }
    let line = places.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" ");
    let end = places.last().copied().unwrap_or((right, base));
    let label = |point: Option<&(String, u64)>| point.map(|(label, _)| label.clone()).unwrap_or_default();
    Chart::Lines(LineChart {
        area: format!("{left},{base} {line} {},{base}", end.0),
        line,
        scale: [0, most / 2, most].map(|value| (up(value), compact(value))).to_vec(),
        left,
        right,
        base,
        first: label(points.first()),
        last: label(points.last()),
        end,
    })
}

#[derive(Debug)]
pub(super) struct BarChart {
    pub(super) rows: Vec<BarRow>,
    height: u64,
}

#[derive(Debug)]
pub(super) struct BarRow {
    pub(super) text_y: u64,
    pub(super) label: String,
    pub(super) value: String,
    pub(super) bars: Vec<ChartBar>,
}

#[derive(Debug)]
pub(super) struct ChartBar {
    pub(super) y: u64,
    pub(super) width: u64,
    pub(super) tone: Tone,
}

/// What a bar is about: good, or something to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Warning,
}

impl Tone {
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Plain => "bar",
            Self::Warning => "bar warning",
        }
    }
}

/// A row that is to be drawn: its label, its value in words, and how long each of its bars is.
pub(super) struct BarItem {
    pub(super) label: String,
    pub(super) value: String,
    pub(super) parts: Vec<(u64, Tone)>,
}

impl BarItem {
    /// With one bar.
    pub(super) fn one(label: impl Into<String>, value: String, length: u64, tone: Tone) -> Self {
        Self { label: label.into(), value, parts: vec![(length, tone)] }
    }

    /// Above bars that are about something else.
    pub(super) fn heading(label: &str) -> Self {
        Self { label: label.to_owned(), value: String::new(), parts: Vec::new() }
    }
}

/// Rows of bars, each as long as its share of `most`.
pub(super) fn bars(items: Vec<BarItem>, most: u64) -> Chart {
    let mut y = 0;
    let mut rows = Vec::with_capacity(items.len());
    for BarItem { label, value, parts } in items {
        let text_y = y + TEXT_HEIGHT - 4;
        y += TEXT_HEIGHT;
        let mut bars = Vec::with_capacity(parts.len());
        for (amount, tone) in parts {
            // What there is can be seen, however little it is.
            let width = part(amount, most, WIDTH).max(if amount > 0 { 2 } else { 0 });
            bars.push(ChartBar { y, width, tone });
            y += BAR_HEIGHT + 2;
        }
        y += ROW_GAP;
        rows.push(BarRow { text_y, label: shortened(&label, &value), value, bars });
    }
    Chart::Bars(BarChart { rows, height: y.saturating_sub(ROW_GAP).max(1) })
}

#[derive(Debug)]
pub(super) struct StepChart {
    pub(super) rows: Vec<StepRow>,
    height: u64,
}

#[derive(Debug)]
pub(super) struct StepRow {
    pub(super) text_y: u64,
    pub(super) label: String,
    /// How far it is, in a word.
    pub(super) value: String,
    pub(super) bar_y: u64,
    pub(super) steps: Vec<StepCell>,
}

#[derive(Debug)]
pub(super) struct StepCell {
    pub(super) x: u64,
    pub(super) width: u64,
    pub(super) class: &'static str,
}

/// Rows of steps: label, how far it is in a word, and how many of `count` steps it has taken; none where it was given up.
pub(super) fn steps(items: Vec<(String, String, Option<u64>)>, count: u64) -> Chart {
    let count = count.max(1);
    let width = (WIDTH / count).saturating_sub(4).max(1);
    let mut rows = Vec::with_capacity(items.len());
    for (row, (label, value, taken)) in (0..).zip(items) {
        let y = row * (TEXT_HEIGHT + BAR_HEIGHT + ROW_GAP);
        let class = |step| match taken {
            Some(taken) if step + 1 == taken => "step now",
            Some(taken) if step < taken => "step taken",
            _ => "step",
        };
        let cell = |step| StepCell { x: step * WIDTH / count, width, class: class(step) };
        rows.push(StepRow {
            text_y: y + TEXT_HEIGHT - 4,
            label: shortened(&label, &value),
            value,
            bar_y: y + TEXT_HEIGHT,
            steps: (0..count).map(cell).collect(),
        });
    }
    let height = (rows.len() as u64 * (TEXT_HEIGHT + BAR_HEIGHT + ROW_GAP)).saturating_sub(ROW_GAP).max(1);
    Chart::Steps(StepChart { rows, height })
}

/// A label that leaves room for its value.
fn shortened(label: &str, value: &str) -> String {
    let most = ROW_LETTERS.saturating_sub(value.chars().count()).max(FEWEST_LETTERS);
    if label.chars().count() <= most {
        return label.to_owned();
    }
    let mut short: String = label.chars().take(most - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[u64]) -> LineChart {
        match lines(&values.iter().map(|value| (value.to_string(), *value)).collect::<Vec<_>>()) {
            Chart::Lines(chart) => chart,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_stays_in_its_frame_whatever_it_shows() {
        for values in [&[][..], &[0], &[7], &[0, 0, 0], &[1, u64::MAX], &[5; 400], &[u64::MAX, 0]] {
            let chart = line(values);
            for place in chart.line.split(' ').filter(|place| !place.is_empty()) {
                let (x, y) = place.split_once(',').unwrap();
                assert!((SCALE_WIDTH..=WIDTH).contains(&x.parse().unwrap()), "{values:?}");
                assert!((TOP..=TOP + PLOT_HEIGHT).contains(&y.parse().unwrap()), "{values:?}");
            }
        }
        assert_eq!(line(&[0, 5, 10]).line, "44,164 199,89 354,14", "ten is the top, half of it the middle");
        assert_eq!(line(&[10]).line, "44,14 354,14");
        assert_eq!(line(&[3, 39]).scale.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["0", "20", "40"]);
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        let item = |amount| BarItem::one("x".repeat(99), String::new(), amount, Tone::Plain);
        let Chart::Bars(chart) = bars([0, 1, 50, 100, u64::MAX].map(item).into(), 100) else { panic!() };
        let widths: Vec<_> = chart.rows.iter().map(|row| row.bars[0].width).collect();
        assert_eq!(widths, [0, 3, 180, 360, 360]);
        assert_eq!(chart.rows[0].label.chars().count(), ROW_LETTERS);
        assert_eq!(shortened("A partner", &"x".repeat(50)), "A partner");
        assert_eq!(shortened("A very long partner", &"x".repeat(50)), "A very long…");
        let Chart::Bars(chart) = bars([0, 7].map(item).into(), 0) else { panic!() };
        assert_eq!(chart.rows.iter().map(|row| row.bars[0].width).collect::<Vec<_>>(), [0, 2], "no most");
        assert_eq!(bars(Vec::new(), 5).height(), 1);
    }

    #[test]
    fn steps_are_taken_in_order() {
        let item = |taken| ("a".to_owned(), "b".to_owned(), taken);
        let Chart::Steps(chart) = steps([Some(0), Some(2), Some(9), None].map(item).into(), 3) else { panic!() };
        let classes = |row: usize| chart.rows[row].steps.iter().map(|step| step.class).collect::<Vec<_>>();
        assert_eq!(classes(1), ["step taken", "step now", "step"]);
        assert_eq!((classes(0), classes(3)), (vec!["step"; 3], vec!["step"; 3]));
        assert_eq!(classes(2), ["step taken"; 3]);
        assert_eq!(steps(Vec::new(), 0).height(), 1);
    }
}
