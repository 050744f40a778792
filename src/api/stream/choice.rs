//! A choice of symbols whose quotes streams show, and the events that carry them. All streams with
//! the same choice send the same frames.
//!
//! The first event of a stream has every symbol, later ones those that have changed. Who has missed
//! one gets every symbol again: nothing is queued.
//!
//! The first state is made on the edge, when the first stream opens. Afterwards only the thread
//! `fan-out` looks at the quotes and makes frames; the edge clones an `Arc` of each.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use crate::api::quotes::{Fetchable, name, wait_ms};
use crate::api::state::State;
use crate::base::Symbol;
use crate::cache::Hit;
use crate::http::Taken;
use crate::http::document::events::{CodedFrame, event};
use crate::http::document::negotiate::Coding;
use crate::views::quotes::closing;

/// Name of the event that carries quotes.
const QUOTES_EVENT: &str = "quotes";

/// Symbols without a quote are asked for again after this, as clients of live prices are told to.
const ASK_AGAIN_MS: u64 = 5_000;

/// What is shown of a symbol.
#[derive(Debug, Clone)]
enum Shown {
    /// A quote, as the cache keeps it.
    Quote {
        open_json: Arc<[u8]>,
        stale: bool,
    },
    /// It is being fetched, and unavailable if nothing has come until then.
    Pending {
        until_mono_ms: u64,
    },
    Unavailable,
}

impl Shown {
    fn quote(open_json: &[u8], stale: bool) -> Self {
        Self::Quote { open_json: open_json.into(), stale }
    }

    /// What is shown instead now, if that differs.
    fn next(&self, hit: Option<&Hit<'_>>, wait_ms: u64, now_mono_ms: u64) -> Option<Self> {
        match (self, hit) {
            (Self::Quote { open_json, stale: was_stale }, Some(Hit::Known { json, stale, .. })) => {
                (**open_json != **json || was_stale != stale).then(|| Self::quote(json, *stale))
            }
            (_, Some(Hit::Known { json, stale, .. })) => Some(Self::quote(json, *stale)),
            (Self::Unavailable, Some(Hit::Unknown) | None) => None,
            (_, Some(Hit::Unknown)) => Some(Self::Unavailable),
            (Self::Pending { until_mono_ms }, None) => {
                (now_mono_ms >= *until_mono_ms).then_some(Self::Unavailable)
            }
            // The cache had to make room.
            (Self::Quote { .. }, None) => Some(Self::missing(wait_ms, now_mono_ms)),
        }
    }

    fn missing(wait_ms: u64, now_mono_ms: u64) -> Self {
        match wait_ms {
            0 => Self::Unavailable,
            wait_ms => Self::Pending { until_mono_ms: now_mono_ms + wait_ms },
        }
    }
}

/// A state of all symbols.
struct Version {
    /// States before this one.
    number: u64,
    /// By symbol.
    shown: Box<[Shown]>,
    /// What differs from the state before; `None` in the first.
    change: Option<CodedFrame>,
    /// All of it, made for the first client that needs it.
    whole: OnceLock<CodedFrame>,
}

/// The symbols and their current state.
pub(super) struct Choice {
    symbols: Box<[Symbol]>,
    /// Network of the client that came first, among whose symbols those count that may not exist.
    client: Option<IpAddr>,
    current: ArcSwap<Version>,
    /// When symbols without a quote were last asked for.
    asked_mono_ms: AtomicU64,
}

impl Choice {
    /// The state of `symbols` in the cache. Symbols that it lacks, or that nobody kept fresh, are
    /// registered with the feeds. Never parks.
    pub(super) fn new(state: &State, symbols: Vec<Symbol>, client: Option<IpAddr>) -> Self {
        let now_mono_ms = state.clock.monotonic_ms();
        let (mut shown, lacking, cold) = first_look(state, &symbols, now_mono_ms);
        let lacked: Vec<Symbol> = lacking.iter().map(|at| symbols[*at].clone()).collect();
        state.l1.count(
            (symbols.len() - lacked.len() - cold.len()) as u64,
            (lacked.len() + cold.len()) as u64,
        );
        let asked = ask(state, client, &lacked);
        if !cold.is_empty() {
            ask(state, client, &cold);
        }
        let wait_ms = wait_ms(state);
        for (at, symbol) in lacking.into_iter().zip(&lacked) {
            if asked.contains(symbol) {
                shown[at] = Shown::missing(wait_ms, now_mono_ms);
            }
        }
        let version =
            Version { number: 0, shown: shown.into(), change: None, whole: OnceLock::new() };
        Self {
            symbols: symbols.into(),
            client,
            current: ArcSwap::from_pointee(version),
            asked_mono_ms: AtomicU64::new(now_mono_ms),
        }
    }

    /// Looks at the quotes, which keeps them fresh, and makes the event of what has changed.
    /// Returns whether anything has. On the thread `fan-out`.
    pub(super) fn look(&self, state: &State) -> bool {
        let now_mono_ms = state.clock.monotonic_ms();
        let current = self.current.load_full();
        let wait_ms = wait_ms(state);
        let (mut changes, mut missing) = (Vec::new(), Vec::new());
        {
            let view = state.l1.view(now_mono_ms);
            for (at, (symbol, shown)) in self.symbols.iter().zip(&current.shown).enumerate() {
                let hit = view.get(symbol.as_str());
                if hit.is_none() {
                    missing.push(symbol.clone());
                }
                changes.extend(shown.next(hit.as_ref(), wait_ms, now_mono_ms).map(|new| (at, new)));
            }
        }
        let has_lost = changes.iter().any(|(_, new)| !matches!(new, Shown::Quote { .. }));
        let asked_mono_ms = self.asked_mono_ms.load(Ordering::Relaxed);
        let is_due = has_lost || now_mono_ms >= asked_mono_ms + ASK_AGAIN_MS;
        if is_due && !missing.is_empty() {
            self.asked_mono_ms.store(now_mono_ms, Ordering::Relaxed);
            ask(state, self.client, &missing);
        }
        if changes.is_empty() {
            return false;
        }
        let changed = changes.iter().map(|(at, shown)| (&self.symbols[*at], shown));
        let change = Some(CodedFrame::compressed(&quotes_event(&changed)));
        let mut shown = current.shown.clone();
        for (at, new) in changes {
            shown[at] = new;
        }
        let number = current.number + 1;
        self.current.store(Arc::new(Version { number, shown, change, whole: OnceLock::new() }));
        true
    }

    /// The newest frame for a client that has the state `seen`, which becomes the current one.
    /// `None` if it is. Never inlined: the load is bound to the thread, and the caller may park.
    #[inline(never)]
    pub(super) fn newest(&self, seen: &mut Option<u64>, coding: Coding) -> Option<Taken> {
        let current = self.current.load();
        let before = seen.replace(current.number);
        let missed = before.map(|before| current.number - before);
        let (frames, skipped) = match (missed, &current.change) {
            (Some(0), _) => return None,
            (Some(1), Some(change)) => (change, 0),
            (missed, _) => (self.whole(&current), missed.map_or(0, |missed| missed - 1)),
        };
        Some(Taken { frame: frames.of(coding).clone(), second: None, skipped })
    }

    /// Not compressed, since it is made on the edge. Others who need it meanwhile wait for some
    /// microseconds.
    fn whole<'a>(&self, version: &'a Version) -> &'a CodedFrame {
        version.whole.get_or_init(|| {
            CodedFrame::stored(&quotes_event(&self.symbols.iter().zip(&version.shown)))
        })
    }
}

/// What the cache has of each symbol; the numbers of those that it lacks, which are shown as
/// unavailable; and those whose quote nobody kept fresh. Never inlined: the cache's pin is bound to
/// the thread.
#[inline(never)]
fn first_look(
    state: &State,
    symbols: &[Symbol],
    now_mono_ms: u64,
) -> (Vec<Shown>, Vec<usize>, Vec<Symbol>) {
    let (mut shown, mut lacking, mut cold) =
        (Vec::with_capacity(symbols.len()), Vec::new(), Vec::new());
    let view = state.l1.view(now_mono_ms);
    for (at, symbol) in symbols.iter().enumerate() {
        let hit = view.ask(symbol.as_str());
        if let Some(Hit::Known { cold: true, .. }) = hit {
            cold.push(symbol.clone());
        }
        shown.push(match hit {
            Some(Hit::Known { json, stale, .. }) => Shown::quote(json, stale),
            Some(Hit::Unknown) => Shown::Unavailable,
            None => {
                lacking.push(at);
                Shown::Unavailable
            }
        });
    }
    (shown, lacking, cold)
}

/// Registers `missing` with the scheduler; returns those that are being fetched.
fn ask(state: &State, client: Option<IpAddr>, missing: &[Symbol]) -> Vec<Symbol> {
    let Fetchable { listed, probed } = Fetchable::among(state, missing);
    let mut asked = Vec::new();
    // Without the wait the symbols stay registered.
    if !listed.is_empty() && state.pending.join_listed(&listed).map(drop).is_ok() {
        asked.extend(listed);
    }
    if !probed.is_empty() && state.pending.join_unlisted(client, &probed).map(drop).is_some() {
        asked.extend(probed);
    }
    asked
}

/// The event of these symbols.
fn quotes_event<'a>(all: &(impl Iterator<Item = (&'a Symbol, &'a Shown)> + Clone)) -> Vec<u8> {
    let mut data = Vec::with_capacity(1_024);
    data.extend_from_slice(b"{\"quotes\":[");
    let start = data.len();
    for (_, shown) in all.clone() {
        if let Shown::Quote { open_json, stale } = shown {
            if data.len() > start {
                data.push(b',');
            }
            data.extend_from_slice(open_json);
            data.extend_from_slice(closing(*stale));
        }
    }
    let named = |is: fn(&Shown) -> bool| {
        all.clone().filter(move |(_, shown)| is(shown)).map(|(symbol, _)| symbol)
    };
    data.extend_from_slice(b"],\"unavailable\":[");
    name(&mut data, named(|shown| matches!(shown, Shown::Unavailable)));
    data.extend_from_slice(b"],\"pending\":[");
    name(&mut data, named(|shown| matches!(shown, Shown::Pending { .. })));
    data.extend_from_slice(b"]}");
    event(QUOTES_EVENT, None, &data)
}
