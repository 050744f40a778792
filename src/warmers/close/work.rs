//! A run of the evening's revaluation: how far it is, and which users are valued next. State of the
//! scheduler's thread; decides, and asks nobody.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::SignedDuration;

use super::due::Due;
use super::jobs::{Closes, Reach};
use super::missing::Missing;
use crate::base::{Quote, Source, Symbol};
use crate::brokers::Batch;
use crate::store::{AccountId, PriceOfClose};
use crate::warmers::context::WarmerContext;

/// How long missing prices are asked for: an evening's outage passes, a symbol that no feed knows
/// does not.
pub(crate) const PATIENCE_MS: u64 = 3 * 3_600_000;

/// Between two walks over the users that are not complete. Prices come by the batch, and each walk
/// reads the portfolios of all who wait for one.
pub(crate) const WALK_REST_MS: u64 = 60_000;

/// Before prices may be the next session's, waiting ends: the pages need some minutes.
pub(crate) const PAGES_NEED: SignedDuration = SignedDuration::from_mins(10);

/// A run without any new price for this long is reported as stale.
pub(crate) const UNHEARD_MS: u64 = 5 * 60_000;

/// A run under way.
pub(crate) struct Work {
    pub(crate) due: Due,
    pub(crate) began_mono_ms: u64,
    pub(crate) heard_mono_ms: u64,
    pub(crate) closes: Arc<Closes>,
    pub(crate) missing: Missing,
    /// Received and not stored yet; `keeping` is what the job under way stores.
    pub(crate) unkept: Vec<PriceOfClose>,
    pub(crate) keeping: Vec<PriceOfClose>,
    pub(crate) step: Step,
    /// The last walk that has ended.
    pub(crate) walked: Option<Walked>,
}

pub(crate) enum Step {
    Look,
    /// Prices are asked for; beside it users are walked over.
    Price(Option<Walk>),
    /// No more prices are asked for.
    Last(Walk),
    Finish,
}

/// A walk over the users that are not complete.
pub(crate) struct Walk {
    pub(crate) reach: Reach,
    /// The next page begins after this user.
    pub(crate) after: AccountId,
    pub(crate) awaited: Arc<HashSet<Symbol>>,
    /// Closing prices that were kept when it began.
    pub(crate) prices: usize,
}

pub(crate) struct Walked {
    pub(crate) reach: Reach,
    pub(crate) prices: usize,
    pub(crate) at_mono_ms: u64,
}

impl Work {
    pub(crate) fn of(due: Due, now_mono_ms: u64) -> Self {
        Self {
            due,
            began_mono_ms: now_mono_ms,
            heard_mono_ms: now_mono_ms,
            closes: Arc::default(),
            missing: Missing::default(),
            unkept: Vec::new(),
            keeping: Vec::new(),
            step: Step::Look,
            walked: None,
        }
    }

    /// Whether prices are still asked for.
    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.step, Step::Price(_))
    }

    pub(crate) fn is_unheard(&self, now_mono_ms: u64) -> bool {
        now_mono_ms.saturating_sub(self.heard_mono_ms) > UNHEARD_MS
    }

    /// Takes in what a feed said of closing prices. `witness`: what it said of an index.
    pub(crate) fn take_prices(
        &mut self,
        source: Source,
        batch: &Batch,
        witness: Option<&Quote>,
        now_mono_ms: u64,
    ) {
        for quote in &batch.quotes {
            self.missing.answered(source, &quote.symbol, now_mono_ms);
            let Some((symbol, close)) = self.due.closing_price(quote, witness) else { continue };
            if self.missing.found(&symbol) {
                self.unkept.push((symbol, close));
                self.heard_mono_ms = now_mono_ms;
            }
        }
        for symbol in batch.unknown.iter().chain(&batch.implausible) {
            self.missing.answered(source, symbol, now_mono_ms);
        }
    }

    /// Whether there are symbols about which no feed has answered.
    pub(crate) fn is_pricing(&self) -> bool {
        self.is_asking() && !self.missing.all_answered()
    }

    /// Begins the next walk, if there is to be one now. Prices that came are stored first.
    pub(crate) fn step_on(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        if !matches!(self.step, Step::Price(None)) || !self.unkept.is_empty() {
            return;
        }
        let late = self.due.until.duration_since(context.clock.now()) <= PAGES_NEED;
        let Some(reach) = self.next_reach(late, now_mono_ms) else { return };
        let (date, missing, priced) = (self.due.date, self.missing.len(), self.closes.len());
        tracing::info!(%date, ?reach, priced, missing, "valuing at the close");
        let awaited = Arc::new(self.missing.awaited());
        let walk = Walk { reach, after: AccountId(0), awaited, prices: self.closes.len() };
        self.step = match reach {
            Reach::Last => Step::Last(walk),
            Reach::Complete | Reach::Everybody => Step::Price(Some(walk)),
        };
    }

    /// Whom the next walk is to reach. Without any price of the date there is nothing to value at,
    /// however long it takes, unless nothing is waited for.
    pub(crate) fn next_reach(&self, late: bool, now_mono_ms: u64) -> Option<Reach> {
        if self.missing.is_over() {
            return Some(Reach::Last);
        }
        if self.closes.is_empty() {
            return None;
        }
        let since = |mono_ms: u64| now_mono_ms.saturating_sub(mono_ms);
        if late || since(self.began_mono_ms) >= PATIENCE_MS {
            return Some(Reach::Last);
        }
        let answered = self.missing.all_answered();
        let reach = if answered { Reach::Everybody } else { Reach::Complete };
        let is_due = match &self.walked {
            None => answered || since(self.began_mono_ms) >= WALK_REST_MS,
            Some(last) => {
                let has_news = self.closes.len() > last.prices;
                reach > last.reach || (has_news && since(last.at_mono_ms) >= WALK_REST_MS)
            }
        };
        is_due.then_some(reach)
    }
}
