//! The wire over a Valkey or Redis server: turns news into updates of the relay, and back.

use std::io;
use std::sync::Arc;

use crossbeam_channel::{Sender, bounded};
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::base::{Clock, Source, Symbol};
use crate::cache::{FreshnessRules, Limits, SourceRules};
use crate::nodes::cluster::{SharedTokens, TokenCounts, TokenEvent};
use crate::nodes::relay::news::{
    Evening, News, RUNNING_MAX, RunningSignals, Told, Wire, WireError, WireReading,
};
use crate::nodes::relay::traits;
use crate::nodes::relay::{Aged, Follower, FollowerParts, Published, Relay, Update, ValkeyRelay};
use crate::nodes::tokens::{Exchange, ExchangeParts, HEARD_MAX};
use crate::nodes::valkey::{Installation, Server};
use crate::signals::patterns::Key;
use crate::signals::{Direction, ListedSignal, Look};
use crate::store::Epoch;

/// The other nodes, over one server.
pub(crate) struct ValkeyWire {
    relay: Arc<ValkeyRelay>,
    // Before the follower, from which it hears.
    _tokens: Exchange,
    follower: Arc<Follower>,
}

/// Takes news, or gives them back.
type Put = Box<dyn Fn(Box<News>) -> Result<(), Box<News>> + Send>;

/// Takes what the leader sends. Neither call blocks.
pub(crate) struct Inbox {
    pub has_room: Box<dyn Fn() -> bool + Send>,
    /// Gives it back while the one before waits.
    pub put: Put,
}

/// Who this node is among the others, and what it shares with them.
pub(crate) struct WireParts {
    pub server: Arc<Server>,
    /// What is told and kept is signed for it, and brokers' tokens of the day are sealed.
    pub installation: Arc<Installation>,
    pub node: String,
    /// Where prices go that the leader sends.
    pub inbox: Inbox,
    /// Called when another node has changed accounts or tokens.
    pub changed: Box<dyn Fn() + Send>,
    pub tokens: SharedTokens,
    pub clock: Clock,
}

impl ValkeyWire {
    /// Starts to hear, and to tell of tokens.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn start(parts: WireParts) -> io::Result<Self> {
        let WireParts { server, installation, node, inbox, changed, tokens, clock } = parts;
        let (sealed, heard) = bounded(HEARD_MAX);
        let follower = Arc::new(Follower::start(FollowerParts {
            server: Arc::clone(&server),
            installation: Arc::clone(&installation),
            listener: Box::new(listener((inbox, changed), sealed, Arc::clone(&tokens.counts))),
        })?);
        let relay = Arc::new(ValkeyRelay::new(&server, &installation, &node));
        let hears = Arc::clone(&follower);
        let _tokens = Exchange::start(ExchangeParts {
            relay: relay.clone(),
            heard,
            connects: Box::new(move || hears.reading().connects),
            installation,
            node,
            tokens,
            clock,
        })?;
        Ok(Self { relay, _tokens, follower })
    }
}

/// Sealed words that find no room are dropped: they come again.
fn listener(
    (inbox, changed): (Inbox, Box<dyn Fn() + Send>),
    sealed: Sender<Vec<u8>>,
    counts: Arc<TokenCounts>,
) -> impl Fn(traits::Told) -> Result<(), traits::Told> + Send {
    move |told| match told {
        traits::Told::Update(update) => hear(&inbox, update).map_err(traits::Told::Update),
        traits::Told::State(update) => hear(&inbox, update).map_err(traits::Told::State),
        traits::Told::Sealed(bytes) => {
            if sealed.try_send(bytes).is_err() {
                counts.add(TokenEvent::Dropped);
            }
            Ok(())
        }
        traits::Told::Changes => {
            changed();
            Ok(())
        }
    }
}

/// Gives the update back where the scheduler has not taken the one before. What another program
/// wrote is dropped.
fn hear(inbox: &Inbox, update: Box<Update>) -> Result<(), Box<Update>> {
    if !(inbox.has_room)() {
        return Err(update);
    }
    if let Some(news) = news(*update) {
        // Only this thread hears, so the room is still there; or the scheduler has ended.
        let _ = (inbox.put)(Box::new(news));
    } else {
        tracing::debug!("news of another program dropped");
    }
    Ok(())
}

impl Wire for ValkeyWire {
    fn tell(&self, epoch: Epoch, news: News) -> Result<(), WireError> {
        match self.relay.publish(epoch, &update(news)) {
            Ok(Published::Told) => Ok(()),
            Ok(Published::Fenced) => Err(WireError::Deposed),
            Err(error) => Err(WireError::Unavailable(error.to_string())),
        }
    }

    fn want(&self, symbols: &[Symbol]) -> Result<(), WireError> {
        self.relay.want(symbols).map_err(|error| WireError::Unavailable(error.to_string()))
    }

    fn tell_of_changes(&self) -> Result<(), WireError> {
        self.relay.tell_of_changes().map_err(|error| WireError::Unavailable(error.to_string()))
    }

    fn wanted(&self) -> Vec<Symbol> {
        self.follower.wanted()
    }

    fn reading(&self) -> WireReading {
        let reading = self.follower.reading();
        WireReading {
            state: reading.state,
            leader: reading.leader.map(|leader| (leader, Epoch(reading.epoch))),
            age_ms: reading.age_ms,
            gaps: reading.gaps,
        }
    }
}

/// Number and epoch are set by who publishes.
fn update(news: News) -> Update {
    let News { quotes, unknown, rules, evening, running, age_ms } = news;
    let mut calls: Calls = [1; Source::ALL.len()];
    for told in &quotes {
        let of_source = &mut calls[told.quote.source as usize];
        *of_source = told.calls.max(*of_source);
    }
    let aged = |told: Told| {
        let never = u64::MAX;
        let age_ms = told.vouched_ago_ms.map_or(never, |ms| ms.max(0).unsigned_abs());
        Aged { quote: told.quote, age_ms }
    };
    Update {
        snapshot: encode_rules(&rules, calls),
        evening: encode_evening(evening, running.as_ref()),
        quotes: quotes.into_iter().map(aged).collect(),
        unknown,
        age_ms,
        ..Update::default()
    }
}

fn news(update: Update) -> Option<News> {
    let Update { snapshot, evening, quotes, unknown, age_ms, .. } = update;
    let (rules, calls) = decode_rules(&snapshot)?;
    let (evening, running) = decode_evening(&evening)?;
    let told = |Aged { quote, age_ms }| Told {
        calls: calls[quote.source as usize],
        vouched_ago_ms: i64::try_from(age_ms).ok(),
        quote,
    };
    let quotes = quotes.into_iter().map(told).collect();
    Some(News { quotes, unknown, rules, evening, running, age_ms })
}

// ---- Codec
//
// The bytes of what goes with prices: the rules by which they become stale, what is in the store,
// and signals of running candles. Compact JSON, checked like outside input when it is read.

/// No limit of ours is longer; a longer one is another program's.
const LIMIT_MS_MAX: u64 = 24 * 3_600_000;

#[derive(Serialize, Deserialize)]
struct Rules {
    sources: [OfSource; Source::ALL.len()],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spoken_for_ms: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct OfSource {
    /// Period and grace.
    moving_ms: (u64, u64),
    resting_ms: (u64, u64),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rests_for_ms: Option<i64>,
    /// Calls that it takes to hear of every leading index.
    calls: u8,
    /// Calls in which everything in demand comes once; nodes of earlier versions do not say it.
    #[serde(default)]
    round: u8,
}

#[derive(Serialize, Deserialize)]
struct InStore {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signals: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instruments: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<Shown>,
}

#[derive(Serialize, Deserialize)]
struct Shown {
    date: String,
    at: String,
    for_ms: u64,
    signals: Vec<Signal>,
}

#[derive(Serialize, Deserialize)]
struct Signal {
    symbol: String,
    pattern: String,
    direction: String,
    /// Confidence, share of hits by date, base rate.
    shares: (f64, Option<f64>, f64),
    /// Prior dates, dates.
    dates: (u32, u32),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    past: Option<(u32, u32)>,
    simulated: bool,
}

/// By source, the calls after which it is asked again.
pub(super) type Calls = [u8; Source::ALL.len()];

/// The rules as bytes.
pub(crate) fn encode_rules(rules: &FreshnessRules, calls: Calls) -> Vec<u8> {
    let pair = |limits: Limits| (limits.period_ms, limits.grace_ms);
    let sources = Source::ALL.map(|source| {
        let SourceRules { moving, resting, rests_for_ms, round } = rules.sources[source as usize];
        let (moving_ms, resting_ms) = (pair(moving), pair(resting));
        OfSource { moving_ms, resting_ms, rests_for_ms, calls: calls[source as usize], round }
    });
    let rules = Rules { sources, spoken_for_ms: rules.spoken_for_ms };
    sonic_rs::to_vec(&rules).expect("numbers always serialise")
}

/// The rules, and the calls by source; `None` where no program of ours wrote the bytes.
pub(crate) fn decode_rules(bytes: &[u8]) -> Option<(FreshnessRules, Calls)> {
    let read: Rules = sonic_rs::from_slice(bytes).ok()?;
    let limits = |(period_ms, grace_ms): (u64, u64)| {
        let fits = period_ms.max(grace_ms) <= LIMIT_MS_MAX;
        fits.then_some(Limits { period_ms, grace_ms })
    };
    let of = |source: &OfSource| {
        let (moving, resting) = (limits(source.moving_ms)?, limits(source.resting_ms)?);
        let (rests_for_ms, round) = (source.rests_for_ms, source.round);
        Some(SourceRules { moving, resting, rests_for_ms, round })
    };
    let [first, second] = &read.sources;
    let sources = [of(first)?, of(second)?];
    let rules = FreshnessRules { sources, spoken_for_ms: read.spoken_for_ms };
    Some((rules, [first.calls, second.calls]))
}

/// What is in the store and what is shown of running candles, as bytes.
pub(crate) fn encode_evening(evening: Evening, running: Option<&RunningSignals>) -> Vec<u8> {
    let text = |date: Option<Date>| date.map(|date| date.to_string());
    let (signals, instruments) = (text(evening.signals), text(evening.instruments));
    let running = running.map(|RunningSignals { look, for_ms, signals }| Shown {
        date: look.date.to_string(),
        at: look.at.to_string(),
        for_ms: *for_ms,
        signals: signals.iter().map(signal_out).collect(),
    });
    sonic_rs::to_vec(&InStore { signals, instruments, running }).expect("always serialises")
}

/// The same from bytes; `None` where no program of ours wrote them.
pub(crate) fn decode_evening(bytes: &[u8]) -> Option<(Evening, Option<RunningSignals>)> {
    let InStore { signals, instruments, running } = sonic_rs::from_slice(bytes).ok()?;
    let date = |text: Option<String>| text.map(|text| text.parse::<Date>()).transpose().ok();
    let evening = Evening { signals: date(signals)?, instruments: date(instruments)? };
    let running = match running {
        Some(shown) => Some(running_in(shown)?),
        None => None,
    };
    Some((evening, running))
}

fn running_in(shown: Shown) -> Option<RunningSignals> {
    let fits = shown.for_ms <= LIMIT_MS_MAX && shown.signals.len() <= RUNNING_MAX;
    let at: Timestamp = shown.at.parse().ok().filter(|_| fits)?;
    Some(RunningSignals {
        look: Look { date: shown.date.parse().ok()?, at },
        for_ms: shown.for_ms,
        signals: shown.signals.into_iter().map(signal_in).collect::<Option<_>>()?,
    })
}

fn signal_out(listed: &ListedSignal) -> Signal {
    Signal {
        symbol: listed.symbol.as_str().to_owned(),
        pattern: listed.pattern.clone(),
        direction: listed.direction.as_str().to_owned(),
        shares: (listed.confidence, listed.date_hit_rate, listed.base_rate),
        dates: (listed.prior_dates, listed.samples),
        past: listed.past,
        simulated: listed.simulated,
    }
}

fn signal_in(told: Signal) -> Option<ListedSignal> {
    let (confidence, date_hit_rate, base_rate) = told.shares;
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    let is_pattern = Key::all().any(|key| key.name() == told.pattern);
    let fits = is_share(confidence) && is_share(base_rate) && date_hit_rate.is_none_or(is_share);
    (fits && is_pattern).then_some(())?;
    Some(ListedSignal {
        symbol: Symbol::parse(&told.symbol)?,
        pattern: told.pattern,
        direction: Direction::parse(&told.direction)?,
        confidence,
        prior_dates: told.dates.0,
        samples: told.dates.1,
        date_hit_rate,
        past: told.past,
        base_rate,
        simulated: told.simulated,
        provisional: true,
    })
}

#[cfg(test)]
#[path = "pinned_tests.rs"]
mod pinned_tests;

#[cfg(test)]
mod codec_tests {
    use proptest::prelude::*;

    use super::*;

    fn limits() -> impl Strategy<Value = Limits> {
        (0..=LIMIT_MS_MAX, 0..=LIMIT_MS_MAX)
            .prop_map(|(period_ms, grace_ms)| Limits { period_ms, grace_ms })
    }

    fn source() -> impl Strategy<Value = SourceRules> {
        let rests_for_ms = proptest::option::of(any::<i64>());
        (limits(), limits(), rests_for_ms, any::<u8>()).prop_map(
            |(moving, resting, rests_for_ms, round)| SourceRules {
                moving,
                resting,
                rests_for_ms,
                round,
            },
        )
    }

    fn signal() -> impl Strategy<Value = ListedSignal> {
        let share = || 0.0..=1.0f64;
        let shares = (share(), proptest::option::of(share()), share());
        let numbers = (any::<u32>(), any::<u32>(), proptest::option::of(any::<(u32, u32)>()));
        (shares, numbers, any::<(bool, bool)>()).prop_map(|(shares, numbers, marks)| {
            let key = Key::all().next().unwrap();
            ListedSignal {
                symbol: Symbol::parse("NSE:INFY").unwrap(),
                pattern: key.name().to_owned(),
                direction: if marks.0 { Direction::Bullish } else { Direction::Bearish },
                confidence: shares.0,
                prior_dates: numbers.0,
                samples: numbers.1,
                date_hit_rate: shares.1,
                past: numbers.2,
                base_rate: shares.2,
                simulated: marks.1,
                provisional: true,
            }
        })
    }

    proptest! {
        #[test]
        fn rules_are_read_as_they_were_written(
            first in source(), second in source(),
            spoken_for_ms in proptest::option::of(any::<i64>()), calls: [u8; 2],
        ) {
            let rules = FreshnessRules { sources: [first, second], spoken_for_ms };
            let bytes = encode_rules(&rules, calls);
            prop_assert_eq!(decode_rules(&bytes), Some((rules, calls)));
            // Cut anywhere, they are refused.
            for end in 0..bytes.len() {
                prop_assert_eq!(decode_rules(&bytes[..end]), None);
            }
        }

        #[test]
        fn what_is_in_the_store_is_read_as_it_was_written(day in 1i8..=28, none: bool) {
            let date = Date::new(2026, 11, day).unwrap();
            let evening = Evening { signals: Some(date), instruments: (!none).then_some(date) };
            let bytes = encode_evening(evening, None);
            prop_assert_eq!(decode_evening(&bytes), Some((evening, None)));
        }

        #[test]
        fn signals_of_running_candles_are_read_as_they_were_written(
            at_ms in 0i64..4_000_000_000_000, for_ms in 0..=LIMIT_MS_MAX,
            signals in proptest::collection::vec(signal(), 0..20),
        ) {
            let at = Timestamp::from_millisecond(at_ms).unwrap();
            let look = Look { date: Date::new(2026, 11, 20).unwrap(), at };
            let running = RunningSignals { look, for_ms, signals };
            let bytes = encode_evening(Evening::default(), Some(&running));
            prop_assert_eq!(decode_evening(&bytes), Some((Evening::default(), Some(running))));
            for end in 0..bytes.len() {
                prop_assert_eq!(decode_evening(&bytes[..end]), None);
            }
        }
    }

    #[test]
    fn a_signal_that_no_look_can_find_is_refused() {
        let told = |pattern: &str, confidence: f64| Signal {
            symbol: "NSE:INFY".to_owned(),
            pattern: pattern.to_owned(),
            direction: "bullish".to_owned(),
            shares: (confidence, None, 0.5),
            dates: (20, 0),
            past: None,
            simulated: false,
        };
        let name = Key::all().next().unwrap().name();
        assert!(signal_in(told(name, 0.5)).is_some());
        assert!(signal_in(told(name, 1.5)).is_none() && signal_in(told("rumour", 0.5)).is_none());
    }

    #[test]
    fn a_limit_that_no_setting_allows_is_refused() {
        let limits = Limits { period_ms: 1_000, grace_ms: LIMIT_MS_MAX + 1 };
        let of = SourceRules { moving: limits, resting: limits, rests_for_ms: None, round: 1 };
        let rules = FreshnessRules { sources: [of, of], spoken_for_ms: None };
        assert_eq!(decode_rules(&encode_rules(&rules, [1, 1])), None);
        assert_eq!(decode_evening(b"\"rumour\""), None);
    }
}
