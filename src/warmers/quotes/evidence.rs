//! Decides which prices far from their previous close are believed, where their own rows do not
//! show it: by the other source, and by repetition. On the scheduler's thread.
//!
//! Remembers what each source said last about such symbols, at most [`SAID_MAX`] in all.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use crate::base::words::{Words, words};
use crate::base::{BoundedMap, Quote, Source, Symbol, clock, json};
use crate::brokers::Batch;
use crate::brokers::quote_checks::{RowEvidence, Unproven};

/// Most claims that are remembered: every share of a large split day, of both sources.
const SAID_MAX: usize = 256;

/// Most symbols that the other source is asked about in one call, beside the indices.
pub(crate) const QUESTIONS_MAX: usize = 10;

/// Time after which the public provider is asked about the same symbol again.
const QUESTION_MS: u64 = 30_000;

/// Two prices of one symbol agree if they are this near, in percent. The public provider is a
/// quarter of an hour behind, in which a share on its first day may move so far.
const AGREES_PCT: Decimal = Decimal::TEN;

/// What the other source said counts as evidence for this long.
const SAID_MS: u64 = 5 * 60_000;

/// A source repeats a price if it gave it so many different times, the first and the last of them
/// so far apart. One absurd answer that is repeated with its time stays one answer.
const REPEATED: u32 = 3;
const REPEATED_OVER: SignedDuration = SignedDuration::from_secs(10);

words! {
    /// What decided about a price far from its previous close. The last two are refusals.
    pub(crate) enum Reason {
        /// Its own row shows it.
        Row = "row",
        /// It is near the price of the same session that is shown.
        Continues = "continues",
        /// The other source said about the same.
        OtherSource = "other_source",
        /// Its source said about the same at different times.
        Repeated = "repeated",
        /// Its own row shows that it is wrong.
        Contradicted = "contradicted",
        /// Nothing shows it.
        Unproven = "unproven",
    }
}

impl Reason {
    fn believes(self) -> bool {
        !matches!(self, Self::Contradicted | Self::Unproven)
    }
}

/// What a source said of a symbol far from its previous close.
struct Said {
    price: Decimal,
    first_at: Timestamp,
    last_at: Timestamp,
    times: u32,
    heard_mono_ms: u64,
}

/// The memory of both sources.
pub(crate) struct Evidence {
    said: BoundedMap<(Symbol, Source), Said>,
    /// Symbols that broker A was not believed about, has not, or lets stand, for the other source.
    questions: BTreeSet<Symbol>,
    /// When it was last asked about each.
    asked_mono_ms: BoundedMap<Symbol, u64>,
    /// Number of prices by what decided about them, in the order of [`Reason::ALL`].
    weighed: [u64; Reason::ALL.len()],
}

impl Evidence {
    pub(crate) fn new() -> Self {
        Self {
            said: BoundedMap::evicting_in_batches(SAID_MAX),
            questions: BTreeSet::new(),
            asked_mono_ms: BoundedMap::evicting_in_batches(SAID_MAX),
            weighed: [0; Reason::ALL.len()],
        }
    }

    /// Number of prices by what decided about them.
    pub(crate) fn weighed(&self) -> [(Reason, u64); Reason::ALL.len()] {
        Reason::ALL.map(|reason| (reason, self.weighed[reason.place()]))
    }

    /// Moves the unproven quotes of an answer to those that are believed or are not. `shown` gives
    /// the quote that requests read now.
    pub(crate) fn weigh(
        &mut self,
        source: Source,
        batch: &mut Batch,
        shown: &dyn Fn(&Symbol) -> Option<Quote>,
        now_mono_ms: u64,
    ) {
        for unproven in std::mem::take(&mut batch.unproven) {
            let shown = shown(&unproven.quote.symbol);
            let reason = self.judge(source, &unproven, shown.as_ref(), now_mono_ms);
            self.weighed[reason.place()] += 1;
            let mut quote = unproven.quote;
            if reason.believes() {
                // A close that the same session's price was compared with before stays credible.
                let session = shown.filter(|shown| date(shown) == date(&quote));
                quote.previous_close = session.and_then(|shown| shown.previous_close);
                self.questions.remove(&quote.symbol);
                batch.quotes.push(quote);
                continue;
            }
            tracing::debug!(%quote.symbol, %reason, "a price far from its previous close refused");
            if source == Source::BrokerA {
                self.ask(&quote.symbol, now_mono_ms);
            }
            batch.implausible.push(quote.symbol);
        }
    }

    /// Asks the public provider about a symbol, if it was not asked lately.
    pub(crate) fn ask(&mut self, symbol: &Symbol, now_mono_ms: u64) {
        let asked = self.asked_mono_ms.get(symbol);
        let asks = asked.is_none_or(|at| now_mono_ms.saturating_sub(*at) >= QUESTION_MS);
        if asks && self.questions.len() < QUESTIONS_MAX {
            self.questions.insert(symbol.clone());
        }
    }

    /// The symbols that the public provider is asked about now. Each is asked about again if broker
    /// A is not believed for long.
    pub(crate) fn take_questions(&mut self, now_mono_ms: u64) -> Vec<Symbol> {
        let questions = std::mem::take(&mut self.questions);
        for symbol in &questions {
            self.asked_mono_ms
                .insert(symbol.clone(), now_mono_ms, |at| Some(*at));
        }
        questions.into_iter().collect()
    }

    pub(crate) fn has_questions(&self) -> bool {
        !self.questions.is_empty()
    }

    fn judge(
        &mut self,
        source: Source,
        unproven: &Unproven,
        shown: Option<&Quote>,
        now_mono_ms: u64,
    ) -> Reason {
        let Unproven { quote, row } = unproven;
        let repeats = self.note(source, quote, now_mono_ms) && *row != RowEvidence::Contradicts;
        // What is shown was believed, whatever its source.
        let goes_on = shown
            .is_some_and(|shown| date(shown) == date(quote) && agrees(quote, shown.last_price));
        let other = Source::ALL.into_iter().find(|other| *other != source);
        let said = other.and_then(|other| self.said.get(&(quote.symbol.clone(), other)));
        let both_say = said.is_some_and(|said| {
            now_mono_ms.saturating_sub(said.heard_mono_ms) <= SAID_MS
                && clock::zoned(said.last_at).date() == date(quote)
                && agrees(quote, said.price)
        });
        match row {
            RowEvidence::Supports => Reason::Row,
            _ if goes_on => Reason::Continues,
            _ if both_say => Reason::OtherSource,
            _ if repeats => Reason::Repeated,
            RowEvidence::Silent => Reason::Unproven,
            RowEvidence::Contradicts => Reason::Contradicted,
        }
    }

    /// Remembers what a source said. True if it has said about the same at different times.
    fn note(&mut self, source: Source, quote: &Quote, now_mono_ms: u64) -> bool {
        let key = (quote.symbol.clone(), source);
        let price = quote.last_price;
        let at = quote.as_of;
        let mut said = Said {
            price,
            first_at: at,
            last_at: at,
            times: u32::from(quote.timed),
            heard_mono_ms: now_mono_ms,
        };
        let known = self
            .said
            .get(&key)
            .filter(|known| quote.timed && agrees(quote, known.price));
        if let Some(known) = known.filter(|known| at >= known.last_at) {
            said.first_at = known.first_at;
            said.times = known.times + u32::from(at > known.last_at);
        }
        let repeats =
            said.times >= REPEATED && said.last_at.duration_since(said.first_at) >= REPEATED_OVER;
        self.said.insert(key, said, |said| Some(said.heard_mono_ms));
        repeats
    }
}

fn date(quote: &Quote) -> jiff::civil::Date {
    clock::zoned(quote.as_of).date()
}

fn agrees(quote: &Quote, price: Decimal) -> bool {
    json::percent_change(quote.last_price, price).is_some_and(|pct| pct.abs() <= AGREES_PCT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing;

    struct Scene {
        evidence: Evidence,
        shown: Option<Quote>,
    }

    impl Scene {
        fn new() -> Self {
            Self {
                evidence: Evidence::new(),
                shown: None,
            }
        }

        /// A source says a price with a time in seconds. Returns whether it is believed.
        fn says(&mut self, source: Source, price: &str, at_s: i64, row: RowEvidence) -> bool {
            let began: Timestamp = "2026-11-20T11:00:00+05:30".parse().unwrap();
            let as_of = began + SignedDuration::from_secs(at_s);
            let quote = testing::quote("NSE:NEW", price, as_of);
            let quote = Quote {
                source,
                previous_close: None,
                ..quote
            };
            let unproven = vec![Unproven { quote, row }];
            let mut batch = Batch {
                unproven,
                ..Batch::default()
            };
            let shown = self.shown.clone();
            self.evidence.weigh(
                source,
                &mut batch,
                &|_| shown.clone(),
                at_s.unsigned_abs() * 1_000,
            );
            assert_eq!(batch.quotes.len() + batch.implausible.len(), 1);
            self.shown = batch.quotes.pop().or(self.shown.take());
            batch.implausible.is_empty()
        }
    }

    const A: Source = Source::BrokerA;
    const PUBLIC: Source = Source::Public;
    const SILENT: RowEvidence = RowEvidence::Silent;
    const CONTRADICTS: RowEvidence = RowEvidence::Contradicts;

    #[test]
    fn what_both_sources_say_is_believed_and_so_is_what_follows() {
        let mut scene = Scene::new();
        assert!(!scene.says(A, "480", 900, CONTRADICTS));
        assert_eq!(scene.evidence.questions.len(), 1);
        assert!(scene.says(PUBLIC, "466", 901, SILENT), "a quarter of an hour before");
        assert!(scene.says(A, "481", 902, CONTRADICTS));
        assert!(!scene.says(A, "4810", 903, SILENT) && scene.says(A, "481", 904, SILENT));
        let weighed = scene.evidence.weighed().map(|(_, count)| count);
        assert_eq!(weighed, [0, 2, 1, 0, 1, 1], "in the order of the reasons");
    }

    #[test]
    fn the_other_source_is_asked_about_the_same_symbol_rarely() {
        let mut scene = Scene::new();
        let mut asked = Vec::new();
        for at_s in 0..65 {
            assert!(!scene.says(A, "4.8", at_s, CONTRADICTS));
            if !scene
                .evidence
                .take_questions(at_s.unsigned_abs() * 1_000)
                .is_empty()
            {
                asked.push(at_s);
            }
        }
        assert_eq!(asked, [0, 30, 60]);
    }

    #[test]
    fn sources_that_are_wrong_in_different_ways_prove_nothing() {
        let mut scene = Scene::new();
        for at_s in 0..9 {
            assert!(
                !scene.says(A, "4.8", at_s, SILENT) && !scene.says(PUBLIC, "48000", at_s, SILENT)
            );
        }
        let mut old = Scene::new();
        assert!(!old.says(A, "480", 0, SILENT));
        assert!(!old.says(PUBLIC, "480", 400, SILENT), "broker A said so long ago");
    }

    #[test]
    fn one_source_is_believed_once_it_repeats_a_price_with_moving_times() {
        let mut scene = Scene::new();
        assert!(!scene.says(A, "480", 0, SILENT) && !scene.says(A, "481", 5, SILENT));
        assert!(scene.says(A, "482", 10, SILENT));
        let mut frozen = Scene::new();
        assert!((0..100).all(|_| !frozen.says(A, "4.8", 0, SILENT)), "with the same time");
        let mut wild = Scene::new();
        assert!((0..50).all(|s| !wild.says(A, if s % 2 == 0 { "4.8" } else { "480" }, s, SILENT)));
        let mut wrong = Scene::new();
        assert!((0..50).all(|s| !wrong.says(A, "4.8", s, CONTRADICTS)), "against its own row");
    }

    #[test]
    fn what_its_row_supports_is_believed_at_once() {
        assert!(Scene::new().says(A, "480", 0, RowEvidence::Supports));
    }

    #[test]
    fn claims_of_invented_symbols_fill_no_memory() {
        let mut evidence = Evidence::new();
        for number in 0..3 * SAID_MAX {
            let at = "2026-11-20T11:00:00+05:30".parse().unwrap();
            let quote = testing::quote(&format!("NSE:N{number}"), "480", at);
            let unproven = vec![Unproven { quote, row: SILENT }];
            let mut batch = Batch {
                unproven,
                ..Batch::default()
            };
            evidence.weigh(A, &mut batch, &|_| None, number as u64);
        }
        assert!(evidence.said.len() <= SAID_MAX);
        assert_eq!(evidence.take_questions(0).len(), QUESTIONS_MAX);
    }
}
