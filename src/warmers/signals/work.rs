//! Tells clients what is being done about candles: how many shares have them, which symbols lack
//! them, and why none can be fetched. On the scheduler's thread.

use std::collections::HashMap;

use jiff::civil::Date;

use crate::base::Source;
use crate::brokers::{MarketFeed, Readiness};
use crate::cache::CandleWork;
use crate::views::signals::Progress;
use crate::views::states::DataState;
use crate::warmers::context::WarmerContext;
use crate::warmers::signals::fetch::CandleCalls;
use crate::warmers::signals::histories::Histories;

/// What the task knows of candles.
pub(super) struct Known<'a> {
    pub histories: &'a Histories,
    pub calls: &'a CandleCalls,
    /// The date whose candles are due.
    pub due: Option<Date>,
    /// The last date with a list.
    pub listed: Option<Date>,
    /// Whether this node fetches candles, and has read what is stored.
    pub fetches: bool,
}

impl Known<'_> {
    /// Publishes what has changed.
    pub(super) fn tell(&self, context: &WarmerContext) {
        let work = self.work(context);
        let told = &context.publication.candles;
        if **told.load() != work {
            told.store(work.into());
        }
    }

    fn work(&self, context: &WarmerContext) -> CandleWork {
        let Some(date) = self.due else {
            let detail = "The calendar knows no trading day whose candles could be fetched.";
            return CandleWork {
                state: DataState::None,
                detail: Some(detail.to_owned()),
                ..CandleWork::default()
            };
        };
        let lacking = self
            .histories
            .tracked
            .iter()
            .filter(|tracked| tracked.history.is_none());
        let missing: HashMap<_, _> = lacking
            .map(|tracked| (tracked.symbol.clone(), tracked.given_up))
            .collect();
        let detail = if self.fetches {
            self.unreachable(context)
        } else {
            None
        };
        let state = match (self.listed, &detail) {
            (Some(_), _) => DataState::Ready,
            (None, Some(_)) => DataState::Unreachable,
            (None, None) => DataState::Loading,
        };
        let done = self.histories.count(|tracked| tracked.has(date));
        let progress = self.fetches.then_some(Progress {
            done,
            of: self.histories.len(),
        });
        CandleWork {
            state,
            progress,
            detail,
            missing,
        }
    }

    /// Why no source gives candles; `None` while one may.
    fn unreachable(&self, context: &WarmerContext) -> Option<String> {
        let a = context.broker_a.candles_readiness();
        let a = self.trouble(Source::BrokerA, a)?;
        let public = context
            .public
            .as_ref()
            .map_or(Readiness::Off, |public| public.readiness());
        let public = self.trouble(Source::Public, public)?;
        Some(format!(
            "Daily candles cannot be fetched: broker A {a}, and the public provider {public}. \
             They are asked again."
        ))
    }

    fn trouble(&self, source: Source, readiness: Readiness) -> Option<&'static str> {
        match readiness {
            Readiness::NoToken => Some("has no token"),
            Readiness::NoPermission => Some("does not permit it"),
            Readiness::Off => Some("is not set up"),
            Readiness::Open(_) => Some("does not answer"),
            _ if self.calls.fails(source) => Some("does not answer"),
            Readiness::Ready | Readiness::Paced(_) | Readiness::Follows => None,
        }
    }
}
