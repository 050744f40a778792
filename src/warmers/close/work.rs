//! A run of the revaluation: its progress, and which users are valued next. Belongs to the
//! scheduler's thread. Decides only, makes no calls.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::SignedDuration;

use crate::base::{Quote, Source, Symbol};
use crate::brokers::Batch;
use crate::store::{AccountId, PriceOfClose};
use crate::warmers::close::due::{Due, Judges};
use crate::warmers::close::jobs::{Closes, Reach};
use crate::warmers::close::missing::Missing;
use crate::warmers::context::WarmerContext;

/// Missing prices are asked for this long. An evening's outage ends by then; a symbol that no feed
/// knows stays unknown.
pub(crate) const PATIENCE_MS: u64 = 3 * 3_600_000;

/// Interval between two looks for portfolios that came since the last. With a call of a feed and a
/// page they are at the close within a minute.
pub(crate) const LOOK_EACH_MS: u64 = 15_000;

/// Interval between two walks over incomplete users. Prices arrive in batches, and each walk reads
/// the portfolios of all users who lack one.
pub(crate) const WALK_REST_MS: u64 = 60_000;

/// Waiting for prices ends this long before they may be the next session's, because the pages need
/// some minutes.
pub(crate) const PAGES_NEED: SignedDuration = SignedDuration::from_mins(10);

/// A run without any new price for this long is reported as stale.
pub(crate) const UNHEARD_MS: u64 = 5 * 60_000;

/// State of a run.
pub(crate) struct Work {
    pub due: Due,
    pub(crate) began_mono_ms: u64,
    pub(crate) heard_mono_ms: u64,
    pub(crate) looked_mono_ms: u64,
    pub closes: Arc<Closes>,
    pub(crate) missing: Missing,
    /// When a look last found symbols that the run did not know.
    pub(crate) came_mono_ms: u64,
    /// Prices not stored yet; `keeping` are those in the job under way.
    pub(crate) unkept: Vec<PriceOfClose>,
    pub(crate) keeping: Vec<PriceOfClose>,
    pub(crate) step: Step,
    /// The last finished walk.
    pub(crate) walked: Option<Walked>,
    /// The date was settled before: only what came since is looked for.
    pub(crate) again: bool,
    /// As in `Looked`.
    pub(crate) is_late: bool,
    pub(crate) cut_off: bool,
}

pub(crate) enum Step {
    Look,
    /// Prices are asked for, and meanwhile users are walked over.
    Price(Option<Walk>),
    /// No more prices are asked for.
    Last(Walk),
    Finish,
}

/// A walk over incomplete users.
pub(crate) struct Walk {
    pub reach: Reach,
    /// The next page begins after this user.
    pub after: AccountId,
    /// As in `PageOrder`.
    pub given_up: Arc<HashSet<Symbol>>,
    /// Number of closing prices stored when the walk began.
    pub(crate) prices: usize,
}

pub(crate) struct Walked {
    pub reach: Reach,
    pub(crate) prices: usize,
    pub(crate) at_mono_ms: u64,
}

impl Work {
    pub(crate) fn of(due: Due, now_mono_ms: u64) -> Self {
        Self {
            due,
            began_mono_ms: now_mono_ms,
            heard_mono_ms: now_mono_ms,
            looked_mono_ms: now_mono_ms,
            closes: Arc::default(),
            missing: Missing::default(),
            came_mono_ms: now_mono_ms,
            unkept: Vec::new(),
            keeping: Vec::new(),
            step: Step::Look,
            walked: None,
            again: false,
            is_late: false,
            cut_off: false,
        }
    }

    /// Whether prices are still asked for.
    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.step, Step::Price(_))
    }

    /// Whether the store may have portfolios that came since the last look.
    pub(crate) fn is_look_due(&self, now_mono_ms: u64) -> bool {
        now_mono_ms.saturating_sub(self.looked_mono_ms) >= LOOK_EACH_MS
    }

    /// Takes symbols without a stored price, of which some may be known or have one by now.
    pub(crate) fn add_missing(
        &mut self,
        symbols: Vec<Symbol>,
        silent: &HashSet<Symbol>,
        now_mono_ms: u64,
    ) {
        let known = self.missing.len();
        let found: HashSet<&Symbol> = self
            .unkept
            .iter()
            .chain(&self.keeping)
            .map(|(symbol, _)| symbol)
            .collect();
        let closes = &self.closes;
        let lacks = |symbol: &Symbol| !closes.contains_key(symbol) && !found.contains(symbol);
        self.missing.add(symbols.into_iter().filter(lacks), silent);
        if self.missing.len() > known {
            self.came_mono_ms = now_mono_ms;
        }
    }

    pub(crate) fn is_unheard(&self, now_mono_ms: u64) -> bool {
        now_mono_ms.saturating_sub(self.heard_mono_ms) > UNHEARD_MS
    }

    /// Takes the closing prices in a feed's answer. `witness`: the feed's quote of an index.
    pub(crate) fn take_prices(
        &mut self,
        source: Source,
        batch: &Batch,
        witness: Option<&Quote>,
        judges: &Judges<'_>,
        now_mono_ms: u64,
    ) {
        let stands = (judges.index_stands)(&batch.quotes);
        for quote in &batch.quotes {
            self.missing.answered(source, &quote.symbol, now_mono_ms);
            let judge = |quote: &mut Quote| (judges.judge)(quote, stands);
            let derivatives = (judges.derivatives_of)(&quote.symbol);
            let price = self.due.closing_price(quote, witness, derivatives, judge);
            let Some((symbol, close)) = price else {
                continue;
            };
            if self.missing.found(&symbol) {
                self.unkept.push((symbol, close));
                self.heard_mono_ms = now_mono_ms;
            }
        }
        for symbol in batch.unknown.iter().chain(&batch.implausible) {
            self.missing.answered(source, symbol, now_mono_ms);
        }
    }

    /// Whether no feed has answered about some symbol yet.
    pub(crate) fn is_pricing(&self) -> bool {
        self.is_asking() && !self.missing.all_answered()
    }

    /// Begins the next walk if one is due. Prices that have arrived are stored first.
    pub(crate) fn step_on(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        if !matches!(self.step, Step::Price(None)) || !self.unkept.is_empty() {
            return;
        }
        let late = self.due.until.duration_since(context.clock.now()) <= PAGES_NEED;
        let Some(reach) = self.next_reach(late, now_mono_ms) else {
            return;
        };
        let date = self.due.date;
        let missing = self.missing.len();
        let priced = self.closes.len();
        tracing::info!(%date, ?reach, priced, missing, "valuing portfolios at the closing prices");
        let given_up = Arc::new(self.missing.given_up(reach));
        let walk = Walk {
            reach,
            after: AccountId(0),
            given_up,
            prices: self.closes.len(),
        };
        self.step = match reach {
            Reach::Last => Step::Last(walk),
            Reach::Complete | Reach::Everybody => Step::Price(Some(walk)),
        };
    }

    /// The reach of the next walk; `None` if none is due. Without any price of the date no walk
    /// begins, however long that takes, unless no price is waited for.
    pub(crate) fn next_reach(&self, late: bool, now_mono_ms: u64) -> Option<Reach> {
        if self.missing.is_over() {
            return Some(Reach::Last);
        }
        if self.closes.is_empty() {
            return None;
        }
        let since = |mono_ms: u64| now_mono_ms.saturating_sub(mono_ms);
        let answered = self.missing.all_answered();
        // What a sync brought a moment ago is asked for first.
        let is_asked_for = answered || since(self.came_mono_ms) >= WALK_REST_MS;
        if late || is_asked_for && since(self.began_mono_ms) >= PATIENCE_MS {
            return Some(Reach::Last);
        }
        let reach = if answered {
            Reach::Everybody
        } else {
            Reach::Complete
        };
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
