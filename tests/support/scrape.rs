//! A parser of the metrics' text format, stricter than a scraper: whatever it accepts is well
//! formed.

use std::collections::{BTreeMap, BTreeSet};

use super::service::Service;
use super::wait::until;

/// Suffixes of a histogram's samples.
const PARTS: [&str; 3] = ["_bucket", "_sum", "_count"];

/// The family that has a series for each warmer that has succeeded.
pub const SUCCEEDED: &str = "bhav_warmer_last_success_timestamp_seconds";

/// The family that exists once a backup was made.
pub const BACKED_UP: &str = "bhav_backup_last_success_timestamp_seconds";

/// One family: its type and its samples by full name and labels.
pub struct Family {
    pub kind: String,
    pub samples: BTreeMap<String, f64>,
}

/// A whole answer of `/metrics`, by family.
pub struct Scrape(pub BTreeMap<String, Family>);

impl Scrape {
    pub fn of(service: &Service) -> Self {
        let answer = service.admin().get("/metrics").with_status(200);
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
        Self::parse(answer.text())
    }

    /// The first answer for which `holds` is true.
    pub fn until(service: &Service, what: &str, holds: impl Fn(&Self) -> bool) -> Self {
        until(what, || Some(Self::of(service)).filter(&holds))
    }

    /// The first answer with every family: one appears with a warmer's first success.
    pub fn complete(service: &Service) -> Self {
        Self::until(service, "a warmer's success", |scrape| scrape.0.contains_key(SUCCEEDED))
    }

    /// The sample, if it exists.
    pub fn find(&self, series: &str) -> Option<f64> {
        self.samples()
            .find(|(name, _)| *name == series)
            .map(|(_, value)| value)
    }

    pub fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        let mut current = String::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect("help without text");
                assert!(help.ends_with('.'), "{name}: {help}");
                let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE "));
                let (typed, kind) = kind.and_then(|line| line.split_once(' ')).expect("no TYPE");
                assert_eq!(typed, name, "TYPE of another family");
                let family = Family {
                    kind: kind.to_owned(),
                    samples: BTreeMap::new(),
                };
                assert!(families.insert(name.to_owned(), family).is_none(), "{name} twice");
                current = name.to_owned();
                continue;
            }
            let (series, value) = line.rsplit_once(' ').expect("no value");
            let name = series.split('{').next().unwrap();
            let family = families
                .get_mut(&current)
                .expect("a sample before any family");
            let suffixes = if family.kind == "histogram" {
                &PARTS[..]
            } else {
                &[""]
            };
            let own = |suffix: &&str| name.strip_suffix(*suffix) == Some(&*current);
            assert!(suffixes.iter().any(own), "{series} below {current}");
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(family.samples.insert(series.to_owned(), value).is_none(), "{series} twice");
        }
        Self(families)
    }

    /// Every sample by its full name and labels.
    pub fn samples(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0
            .values()
            .flat_map(|family| family.samples.iter().map(|(name, v)| (&**name, *v)))
    }

    #[track_caller]
    pub fn value(&self, series: &str) -> f64 {
        self.find(series).unwrap_or_else(|| panic!("no {series}"))
    }

    /// The names as queries use them; a histogram has one for each part.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (name, family) in &self.0 {
            match &*family.kind {
                "histogram" => names.extend(PARTS.map(|part| format!("{name}{part}"))),
                _ => _ = names.insert(name.clone()),
            }
        }
        names
    }
}

/// The labels of a series, in order.
pub fn labels(series: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = series.split_once('{') else {
        return Vec::new();
    };
    let inner = rest.strip_suffix('}').expect("an open brace");
    let pairs = inner.split("\",").filter_map(|pair| pair.split_once("=\""));
    pairs
        .map(|(name, value)| (name.to_owned(), value.trim_end_matches('"').to_owned()))
        .collect()
}
