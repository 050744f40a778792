//! What is told over the relay. Pure.
//!
//! Prices come as the leader judged them: with how long ago their source vouched for them, and with
//! the rules by which they become stale. So every node shows the same bytes at the same time,
//! whatever its own clocks read.

use jiff::civil::Date;

use crate::base::{Quote, Symbol};
use crate::cache::{FreshnessRules, Vouched};
use crate::market::{IndexList, InstrumentList, Origin};
use crate::signals::{ListedSignal, Look, SignalList};
use crate::store::Epoch;

/// Most quotes of one message: two of broker A's batches, some 150 KiB. What does not fit goes with
/// the next.
pub(crate) const QUOTES_MAX: usize = 1_000;

/// Most symbols that one node says that it wants: one of broker A's batches.
pub(crate) const WANTED_MAX: usize = 500;

/// Most signals of running candles that are told: every pattern of a large universe is fewer.
pub(crate) const RUNNING_MAX: usize = 1_000;

/// What the leader tells.
#[derive(Clone, Debug, PartialEq)]
pub struct News {
    /// Those of the snapshot, and those that were brought or confirmed since the last message.
    pub quotes: Vec<Told>,
    /// Symbols that no source knows.
    pub unknown: Vec<Symbol>,
    pub rules: FreshnessRules,
    pub evening: Evening,
    /// `None` where the leader shows none.
    pub running: Option<RunningSignals>,
    /// How long ago it was told.
    pub age_ms: u64,
}

/// One price.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub quote: Quote,
    /// How long ago its source vouched for it; `None` where none has since the leader's start.
    pub vouched_ago_ms: Option<i64>,
    pub calls: u8,
}

impl Told {
    /// As the leader holds it.
    pub(crate) fn of(quote: Quote, vouched: Vouched, now_mono_ms: u64) -> Self {
        let never = vouched.mono_ms == Vouched::NEVER.mono_ms;
        let ago_ms = (now_mono_ms as i64).saturating_sub(vouched.mono_ms);
        Self { quote, vouched_ago_ms: (!never).then_some(ago_ms), calls: vouched.calls }
    }

    /// As a node holds it that hears it now. Messages have the calls of the leading indices alone;
    /// everything else comes in turn.
    pub(crate) fn heard(self, now_mono_ms: u64, indices: &IndexList) -> (Quote, Vouched) {
        let leads = indices.leads().iter().any(|lead| lead.symbol == self.quote.symbol);
        let vouched = self.vouched_ago_ms.map_or(Vouched::NEVER, |ago_ms| Vouched {
            mono_ms: (now_mono_ms as i64).saturating_sub(ago_ms),
            calls: if leads { self.calls } else { Vouched::IN_TURN },
        });
        (self.quote, vouched)
    }
}

/// What is in the store and in the second level, for every node to read it from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evening {
    /// The date whose signals were published last.
    pub signals: Option<Date>,
    /// The date of broker A's list of instruments; `None` before the first.
    pub instruments: Option<Date>,
}

impl Evening {
    /// What this node has.
    pub(crate) fn of(signals: Option<Date>, list: &InstrumentList) -> Self {
        let fetched = list.origin() == Origin::BrokerA;
        Self { signals, instruments: fetched.then(|| list.as_of()) }
    }
}

/// The signals of running candles, as the leader shows them.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningSignals {
    pub look: Look,
    /// How long they may still be shown: the candles grow old.
    pub for_ms: u64,
    pub signals: Vec<ListedSignal>,
}

impl RunningSignals {
    /// Those in `list`, which stand until `until_mono_ms`.
    pub(crate) fn of(list: &SignalList, until_mono_ms: u64, now_mono_ms: u64) -> Option<Self> {
        let signals = list.signals.iter().filter(|signal| signal.provisional);
        Some(Self {
            look: list.look?,
            for_ms: until_mono_ms.saturating_sub(now_mono_ms),
            signals: signals.take(RUNNING_MAX).cloned().collect(),
        })
    }
}

/// What a follower wants the leader to ask for: what requests wait for goes first, then what
/// clients asked for lately or users hold. In an order by which two such lists can be compared.
pub(crate) fn wanted(mut waited: Vec<Symbol>, mut asked: Vec<Symbol>) -> Vec<Symbol> {
    waited.truncate(WANTED_MAX);
    asked.truncate(WANTED_MAX - waited.len());
    waited.extend(asked);
    waited.sort_unstable();
    waited.dedup();
    waited
}

// ---- Wire
//
// What carries news and wants between the nodes.

/// Why something was not told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A newer leader has told something.
    #[error("a newer leader speaks")]
    Deposed,
    #[error("{0}")]
    Unavailable(String),
}

/// What is known of the hearing side, for health and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireReading {
    pub state: &'static str,
    /// The node that told the newest message, and its epoch; `None` before the first.
    pub leader: Option<(String, Epoch)>,
    /// Since the leader was last heard; `None` before that.
    pub age_ms: Option<u64>,
    /// Messages that were missed.
    pub gaps: u64,
}

/// The way to the other nodes.
pub trait Wire: Send + Sync {
    /// Tells the other nodes, as the leader of `epoch`. Blocks, by a deadline of its own; called on
    /// the lane `relay`.
    ///
    /// # Errors
    /// [`WireError`].
    fn tell(&self, epoch: Epoch, news: News) -> Result<(), WireError>;

    /// Tells the leader what this node wants, at most
    /// `WANTED_MAX` symbols. Blocks as [`tell`](Self::tell) does.
    ///
    /// # Errors
    /// [`WireError::Unavailable`].
    fn want(&self, symbols: &[Symbol]) -> Result<(), WireError>;

    /// Tells the other nodes that the database has changes of accounts. One that does not hear it
    /// finds them a second later. Blocks as [`tell`](Self::tell) does; called on the thread
    /// `changes`.
    ///
    /// # Errors
    /// [`WireError::Unavailable`].
    fn tell_of_changes(&self) -> Result<(), WireError>;

    /// What the other nodes want, as far as they said so within some seconds. Never blocks.
    fn wanted(&self) -> Vec<Symbol>;

    /// Never blocks.
    fn reading(&self) -> WireReading;
}

/// No way to the other nodes. One of them leads all the same; the others ask the public provider.
pub(crate) struct NoWire;

impl Wire for NoWire {
    fn tell(&self, _: Epoch, _: News) -> Result<(), WireError> {
        Ok(())
    }

    fn want(&self, _: &[Symbol]) -> Result<(), WireError> {
        Ok(())
    }

    fn tell_of_changes(&self) -> Result<(), WireError> {
        Ok(())
    }

    fn wanted(&self) -> Vec<Symbol> {
        Vec::new()
    }

    fn reading(&self) -> WireReading {
        WireReading { state: "off", ..WireReading::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Source, json};

    #[test]
    fn a_price_is_as_old_at_the_one_who_hears_it_as_at_the_one_who_tells_it() {
        let quote = Quote {
            symbol: Symbol::parse("NSE:INFY").unwrap(),
            last_price: json::parse_decimal("1500.10").unwrap(),
            previous_close: None,
            as_of: "2026-11-20T10:00:00Z".parse().unwrap(),
            timed: true,
            asked: "2026-11-20T10:00:01Z".parse().unwrap(),
            delay_s: None,
            source: Source::BrokerA,
            simulated: true,
        };
        // The leader has run for a day, the follower for a second.
        let vouched = Vouched { mono_ms: 86_398_000, calls: 2 };
        let indices = IndexList::embedded();
        let lead = Quote { symbol: indices.primary.symbol.clone(), ..quote.clone() };
        for (quote, calls) in [(quote.clone(), Vouched::IN_TURN), (lead, 2)] {
            let told = Told::of(quote.clone(), vouched, 86_400_000);
            assert_eq!(told.heard(1_000, &indices), (quote, Vouched { mono_ms: -1_000, calls }));
        }
        let restored = Told::of(quote, Vouched::NEVER, 86_400_000);
        assert_eq!(restored.heard(1_000, &indices).1, Vouched::NEVER);
    }

    #[test]
    fn what_requests_wait_for_is_wanted_before_what_was_asked_for() {
        let symbols = |letter: &str, count: usize| -> Vec<Symbol> {
            (0..count).filter_map(|n| Symbol::parse(&format!("NSE:{letter}{n}"))).collect()
        };
        let of = |letter: char, wanted: &[Symbol]| {
            wanted.iter().filter(|symbol| symbol.ticker().starts_with(letter)).count()
        };
        let both = wanted(symbols("W", 20), symbols("A", 600));
        assert_eq!((of('W', &both), of('A', &both)), (20, WANTED_MAX - 20));
        let full = wanted(symbols("W", 600), symbols("A", 1));
        assert_eq!((of('W', &full), of('A', &full)), (WANTED_MAX, 0));
        assert_eq!(wanted(symbols("A", 2), symbols("A", 2)), symbols("A", 2));
    }
}
