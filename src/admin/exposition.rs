//! The text format of Prometheus, version 0.0.4.
//!
//! Pure. Our own code because every counter lives in the module that counts. A metrics library
//! would require a registry with a second atomic for each counter, or a copy of all counters for
//! each scrape.

use std::fmt::{Display, Write};

use crate::base::{Words, words};
use crate::ops::histogram::{BOUNDS_NS, DurationCounts};

const NS_PER_S: f64 = 1e9;

/// `Content-Type` of the text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

words! {
    /// Type of a metric family.
    pub(super) enum Kind {
        Counter = "counter",
        Gauge = "gauge",
        Histogram = "histogram",
    }
}

/// Names and values of labels. Both come from fixed lists, never from requests.
pub(super) type Labels<'a> = [(&'a str, &'a str)];

/// Builds the text of one scrape.
#[derive(Default)]
pub(super) struct Exposition(String);

/// Adds samples to one family.
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Exposition {
    /// Begins a family. Add all its samples before beginning the next family.
    pub(super) fn family(&mut self, kind: Kind, name: &'static str, help: &str) -> Family<'_> {
        self.push(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        Family {
            text: &mut self.0,
            name,
        }
    }

    /// A counter without labels.
    pub(super) fn counter(&mut self, name: &'static str, help: &str, value: u64) {
        self.family(Kind::Counter, name, help).sample(&[], value);
    }

    /// A gauge without labels.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(Kind::Gauge, name, help).sample(&[], value);
    }

    /// A counter with one label, of which `rows` has the values.
    pub(super) fn counters<L: AsRef<str>, V: Display>(
        &mut self,
        name: &'static str,
        help: &str,
        (label, rows): (&str, impl IntoIterator<Item = (L, V)>),
    ) {
        self.family(Kind::Counter, name, help).rows(label, rows);
    }

    /// A gauge with one label, of which `rows` has the values.
    pub(super) fn gauges<L: AsRef<str>, V: Display>(
        &mut self,
        name: &'static str,
        help: &str,
        (label, rows): (&str, impl IntoIterator<Item = (L, V)>),
    ) {
        self.family(Kind::Gauge, name, help).rows(label, rows);
    }

    /// A state without further labels.
    pub(super) fn state(&mut self, name: &'static str, help: &str, now: impl Words) {
        self.family(Kind::Gauge, name, help).state(&[], now);
    }

    /// A histogram of durations without labels.
    pub(super) fn durations(&mut self, name: &'static str, help: &str, counts: &DurationCounts) {
        self.family(Kind::Histogram, name, help)
            .durations(&[], counts);
    }

    /// Returns the text.
    pub(super) fn finish(self) -> String {
        self.0
    }

    fn push(&mut self, part: std::fmt::Arguments<'_>) {
        push(&mut self.0, part);
    }
}

impl Family<'_> {
    /// Adds one sample.
    pub(super) fn sample(&mut self, labels: &Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    fn rows<L: AsRef<str>, V: Display>(
        &mut self,
        label: &str,
        rows: impl IntoIterator<Item = (L, V)>,
    ) {
        for (name, value) in rows {
            self.sample(&[(label, name.as_ref())], value);
        }
    }

    /// Adds one sample for each state that there is, labelled `state`: 1 for the state `now`, 0 for
    /// the others.
    pub(super) fn state<W: Words>(&mut self, labels: &Labels<'_>, now: W) {
        for state in W::EVERY {
            let labels = [labels, &[("state", state.word())]].concat();
            self.sample(&labels, u8::from(*state == now));
        }
    }

    /// Adds a histogram. `counts` are by bucket and not cumulative; the last bucket is above all
    /// `bounds`.
    pub(super) fn histogram(
        &mut self,
        labels: &Labels<'_>,
        bounds: impl Iterator<Item = f64>,
        counts: &[u64],
        sum: f64,
    ) {
        let mut below = 0;
        for (bound, count) in bounds.zip(counts) {
            below += count;
            self.line("_bucket", labels, Some(&bound), below);
        }
        let all = counts.iter().sum::<u64>();
        self.line("_bucket", labels, Some(&"+Inf"), all);
        self.line("_sum", labels, None, sum);
        self.line("_count", labels, None, all);
    }

    /// Adds a histogram of durations, in seconds.
    pub(super) fn durations(&mut self, labels: &Labels<'_>, counts: &DurationCounts) {
        let bounds = BOUNDS_NS.iter().map(|bound| *bound as f64 / NS_PER_S);
        self.histogram(labels, bounds, &counts.buckets, counts.sum_ns as f64 / NS_PER_S);
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: &Labels<'_>,
        bound: Option<&dyn Display>,
        value: impl Display,
    ) {
        push(self.text, format_args!("{}{suffix}", self.name));
        let mut open = '{';
        for (name, label) in labels {
            push(self.text, format_args!("{open}{name}=\""));
            self.text.extend(label.chars().flat_map(Escaped::of));
            self.text.push('"');
            open = ',';
        }
        if let Some(bound) = bound {
            push(self.text, format_args!("{open}le=\"{bound}\""));
            open = ',';
        }
        if open == ',' {
            self.text.push('}');
        }
        push(self.text, format_args!(" {value}\n"));
    }
}

/// Milliseconds as seconds.
pub(super) fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// An age in seconds; `None` is written as `+Inf`, so that alerts on high ages fire.
pub(super) struct Seconds(pub Option<f64>);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(seconds) => write!(f, "{seconds}"),
            None => f.write_str("+Inf"),
        }
    }
}

/// Escapes a character of a label's value.
struct Escaped;

impl Escaped {
    fn of(letter: char) -> impl Iterator<Item = char> {
        let (first, second) = match letter {
            '\n' => ('\\', Some('n')),
            '\\' | '"' => ('\\', Some(letter)),
            plain => (plain, None),
        };
        std::iter::once(first).chain(second)
    }
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("a String takes every text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::states::ServiceState;

    #[test]
    fn families_are_written_in_the_prometheus_text_format() {
        let mut text = Exposition::default();
        text.counter("a_total", "How many.", 3);
        let mut states = text.family(Kind::Gauge, "s", "Which.");
        states.state(&[("of", "x\\y\"z\n")], ServiceState::Degraded);
        let mut times = text.family(Kind::Histogram, "t_seconds", "How long.");
        times.histogram(&[], [0.000_05, 10.0].into_iter(), &[1, 0, 2], 30.5);
        let expected = "# HELP a_total How many.\n# TYPE a_total counter\na_total 3\n\
             # HELP s Which.\n# TYPE s gauge\n\
             s{of=\"x\\\\y\\\"z\\n\",state=\"ok\"} 0\n\
             s{of=\"x\\\\y\\\"z\\n\",state=\"degraded\"} 1\n\
             s{of=\"x\\\\y\\\"z\\n\",state=\"down\"} 0\n\
             # HELP t_seconds How long.\n# TYPE t_seconds histogram\n\
             t_seconds_bucket{le=\"0.00005\"} 1\nt_seconds_bucket{le=\"10\"} 1\n\
             t_seconds_bucket{le=\"+Inf\"} 3\nt_seconds_sum 30.5\nt_seconds_count 3\n";
        assert_eq!(text.finish(), expected);
    }
}
