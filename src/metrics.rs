//! Figures for the operator's monitoring, and their text form.
//!
//! Counting a request is three additions in a part of the table that few threads share: no lock, no allocation. The series that
//! alerts watch are there from the start, at 0, for a monitoring system sees no increase to a first figure; the others come with
//! their first. There are as many at the most as the tables have places, whatever callers send.
//! This module must never know what a route or a limit is, and nothing of a caller's may become a label.

use std::cell::Cell;
use std::fmt::{self, Display, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Parts that threads spread over.
const PARTS: usize = 8;

/// The statuses with a series of their own; any other is counted as `other`.
const STATUSES: [u16; 19] =
    [200, 202, 204, 303, 304, 400, 401, 403, 404, 405, 406, 408, 410, 413, 415, 429, 499, 500, 503];

/// The statuses that every route has a series of from the start.
const FROM_THE_START: [u16; 6] = [200, 400, 401, 429, 500, 503];

/// The upper ends of the histogram, in microseconds.
const ENDS: [u64; 9] = [500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000];

/// How many requests there were on each route, with which status, and how long they took.
pub struct Requests {
    routes: Vec<&'static str>,
    parts: [Vec<RouteCounts>; PARTS],
}

/// One route in one part. Aligned, so that two parts never share a line of a processor's cache.
#[derive(Default)]
#[repr(align(128))]
struct RouteCounts {
    statuses: [AtomicU64; STATUSES.len() + 1],
    /// Not added up: each request is in one of them.
    spans: [AtomicU64; ENDS.len() + 1],
    micros: AtomicU64,
}

impl Requests {
    /// A table with a row for each of these names.
    pub fn new(routes: Vec<&'static str>) -> Self {
        let parts = std::array::from_fn(|_| routes.iter().map(|_| RouteCounts::default()).collect());
        Self { routes, parts }
    }

    /// Counts a request on the route at that place of the names.
    pub fn count(&self, route: usize, status: u16, took: Duration) {
        let Some(row) = self.parts[part()].get(route) else { return };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let status = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len());
        let span = ENDS.iter().position(|end| micros <= *end).unwrap_or(ENDS.len());
        row.statuses[status].fetch_add(1, Ordering::Relaxed);
        row.spans[span].fetch_add(1, Ordering::Relaxed);
        row.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn sum(&self, route: usize, figure: impl Fn(&RouteCounts) -> &AtomicU64) -> u64 {
        self.parts.iter().map(|part| figure(&part[route]).load(Ordering::Relaxed)).sum()
    }

    pub fn write(&self, page: &mut Exposition) {
        page.begin("requests_total", Kind::Counter, "Requests answered, by route and status; 499: the caller hung up.");
        for (route, name) in self.routes.iter().enumerate() {
            for status in 0..=STATUSES.len() {
                let count = self.sum(route, |row| &row.statuses[status]);
                if count > 0 || STATUSES.get(status).is_some_and(|status| FROM_THE_START.contains(status)) {
                    let status = STATUSES.get(status).map_or_else(|| "other".to_owned(), u16::to_string);
                    page.line("", &[("route", name), ("status", &status)], count);
                }
            }
        }
        page.begin("request_duration_seconds", Kind::Histogram, "How long requests took, by route.");
        for (route, name) in self.routes.iter().enumerate() {
            let spans: Vec<_> = (0..=ENDS.len()).map(|span| self.sum(route, |row| &row.spans[span])).collect();
            let sum = seconds(self.sum(route, |row| &row.micros));
            page.histogram(&[("route", name)], ENDS.iter().map(|end| seconds(*end)), &spans, sum);
        }
    }
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// The part that this thread counts in.
fn part() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PART: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % PARTS);
    }
    PART.get()
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// What a monitoring system reads: the text format of Prometheus, version 0.0.4.
#[derive(Default)]
pub struct Exposition {
    text: String,
    name: &'static str,
}

impl Exposition {
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Begins the series of one name; the lines that follow belong to it.
    pub fn begin(&mut self, name: &'static str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.name = name;
        let prefix = prefix(name);
        self.put(format_args!("# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}\n"));
    }

    /// One series of the name begun last. Labels are names of ours and need no escape.
    pub fn line(&mut self, suffix: &str, labels: &[(&str, &str)], figure: impl Display) {
        let (name, prefix) = (self.name, prefix(self.name));
        self.put(format_args!("{prefix}{name}{suffix}"));
        for (i, (label, value)) in labels.iter().enumerate() {
            let open = if i == 0 { '{' } else { ',' };
            // A partner's name may hold what ends a label.
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            self.put(format_args!("{open}{label}=\"{value}\""));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        self.put(format_args!("{close} {figure}\n"));
    }

    pub fn gauge(&mut self, name: &'static str, help: &str, figure: impl Display) {
        self.begin(name, Kind::Gauge, help);
        self.line("", &[], figure);
    }

    pub fn counter(&mut self, name: &'static str, help: &str, figure: impl Display) {
        self.begin(name, Kind::Counter, help);
        self.line("", &[], figure);
    }

    /// One series of the name begun last for each value of a label.
    pub fn series<L: AsRef<str>, F: Display>(&mut self, label: &str, figures: impl IntoIterator<Item = (L, F)>) {
        for (value, figure) in figures {
            self.line("", &[(label, value.as_ref())], figure);
        }
    }

    /// The series of one histogram of the name begun last: how many there were up to each end, and past the last one, not
    /// added up; and the sum of what they measured.
    pub fn histogram(
        &mut self,
        labels: &[(&str, &str)],
        ends: impl Iterator<Item = f64>,
        counts: &[u64],
        sum: impl Display,
    ) {
        let mut up_to = 0;
        for (end, count) in ends.map(|end| end.to_string()).chain(["+Inf".to_owned()]).zip(counts) {
            up_to += count;
            self.line("_bucket", &[labels, &[("le", &end)]].concat(), up_to);
        }
        self.line("_sum", labels, sum);
        self.line("_count", labels, up_to);
    }

    pub fn into_text(self) -> String {
        self.text
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _infallible = self.text.write_fmt(text);
    }
}

/// Ours, but for what every program exports under the same name.
fn prefix(name: &str) -> &'static str {
    if name.starts_with("process_") { "" } else { "unionhall_" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_many_threads_are_added_up() {
        let requests = Requests::new(vec!["/a", "/b"]);
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for (status, micros) in [(200, 400), (200, 500), (418, 70_000), (503, 60_000_000)] {
                        requests.count(1, status, Duration::from_micros(micros));
                    }
                });
            }
        });
        requests.count(2, 200, Duration::ZERO);
        let mut page = Exposition::default();
        requests.write(&mut page);
        let text = page.into_text();
        assert_eq!(text.matches("requests_total{route=\"/a\"").count(), FROM_THE_START.len(), "{text}");
        for line in [
            "unionhall_requests_total{route=\"/a\",status=\"500\"} 0",
            "unionhall_request_duration_seconds_count{route=\"/a\"} 0",
            "# TYPE unionhall_request_duration_seconds histogram",
            "unionhall_requests_total{route=\"/b\",status=\"200\"} 40",
            "unionhall_requests_total{route=\"/b\",status=\"503\"} 20",
            "unionhall_requests_total{route=\"/b\",status=\"other\"} 20",
            "unionhall_request_duration_seconds_bucket{route=\"/b\",le=\"0.0005\"} 40",
            "unionhall_request_duration_seconds_bucket{route=\"/b\",le=\"0.05\"} 40",
            "unionhall_request_duration_seconds_bucket{route=\"/b\",le=\"0.1\"} 60",
            "unionhall_request_duration_seconds_bucket{route=\"/b\",le=\"5\"} 60",
            "unionhall_request_duration_seconds_bucket{route=\"/b\",le=\"+Inf\"} 80",
            "unionhall_request_duration_seconds_sum{route=\"/b\"} 1201.418",
            "unionhall_request_duration_seconds_count{route=\"/b\"} 80",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
