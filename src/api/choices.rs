//! A choice of symbols whose quotes streams send, and the events that carry them. All streams with
//! the same choice send the same frames.
//!
//! The first event of a stream has every symbol, later ones those that have changed. A client that
//! missed one gets every symbol again; nothing is queued.
//!
//! The first state is made on the edge, when the first stream opens. Afterwards only the thread
//! `fan-out` reads the quotes and makes events; those that write streams clone an `Arc` of each.
//!
//! The choices of symbols of all open streams, each once, however many streams share it.
//!
//! Streams join and leave on the edge; the lock is held for a look-up. The thread `fan-out` makes
//! each choice read its quotes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::api::quote_source::{Fetchable, QuoteSource};
use crate::api::symbols::name;
use crate::base::Symbol;
use crate::cache::Hit;
use crate::http::document::events::{CodedFrame, event};
use crate::http::document::negotiate::Coding;
use crate::http::{Group, StreamsFull, Taken};
use crate::ops::Counter;
use crate::rt::News;
use crate::views::quotes::closing;

/// Name of the event that carries quotes.
const QUOTES_EVENT: &str = "quotes";

/// Interval at which symbols without a quote are requested again, the same as `Retry-After` for
/// live prices.
const ASK_AGAIN_MS: u64 = 5_000;

/// Longest wait for a batch of prices that is being stored. Streams send a batch as a whole,
/// because prices missed now would be sent an interval late. Storing one takes some milliseconds.
const BATCH_WAIT: Duration = Duration::from_millis(50);

/// State of a symbol in a stream.
#[derive(Debug, Clone)]
enum Shown {
    /// A quote, as the cache keeps it.
    Quote {
        open_json: Arc<[u8]>,
        stale: bool,
    },
    /// The quote is being fetched. If none has arrived by then, it counts as unavailable.
    Pending {
        until_mono_ms: u64,
    },
    Unavailable,
}

impl Shown {
    fn quote(open_json: &[u8], stale: bool) -> Self {
        Self::Quote {
            open_json: open_json.into(),
            stale,
        }
    }

    /// The next source, if it differs.
    fn next(&self, hit: Option<&Hit<'_>>, wait_ms: u64, now_mono_ms: u64) -> Option<Self> {
        match (self, hit) {
            (
                Self::Quote {
                    open_json,
                    stale: was_stale,
                },
                Some(Hit::Known { json, stale, .. }),
            ) => (**open_json != **json || was_stale != stale).then(|| Self::quote(json, *stale)),
            (_, Some(Hit::Known { json, stale, .. })) => Some(Self::quote(json, *stale)),
            (Self::Unavailable, Some(Hit::Unknown) | None) => None,
            (_, Some(Hit::Unknown)) => Some(Self::Unavailable),
            (Self::Pending { until_mono_ms }, None) => {
                (now_mono_ms >= *until_mono_ms).then_some(Self::Unavailable)
            }
            // The cache has evicted it.
            (Self::Quote { .. }, None) => Some(Self::missing(wait_ms, now_mono_ms)),
        }
    }

    fn missing(wait_ms: u64, now_mono_ms: u64) -> Self {
        match wait_ms {
            0 => Self::Unavailable,
            wait_ms => Self::Pending {
                until_mono_ms: now_mono_ms + wait_ms,
            },
        }
    }
}

/// A state of all symbols.
struct Version {
    /// States before this one.
    number: u64,
    /// By symbol.
    shown: Box<[Shown]>,
    /// Event with the difference from the state before; `None` in the first.
    change: Option<CodedFrame>,
    /// Event with every symbol, made for the first client that needs it.
    whole: OnceLock<CodedFrame>,
}

/// The symbols and their current state.
pub(super) struct Choice {
    symbols: Box<[Symbol]>,
    /// The streams that show it, and those of some other choices.
    pub(super) group: Group,
    /// Network of the first client. Symbols that may not exist count for it.
    client: Option<IpAddr>,
    current: ArcSwap<Version>,
    /// Time at which symbols without a quote were last requested.
    asked_mono_ms: AtomicU64,
}

impl Choice {
    /// The state of `symbols` in the cache. Missing symbols, and quotes that were not kept fresh,
    /// are registered with the feeds. Never parks.
    fn new(
        source: QuoteSource<'_>,
        symbols: Vec<Symbol>,
        group: Group,
        client: Option<IpAddr>,
    ) -> Self {
        let now_mono_ms = source.clock.monotonic_ms();
        let (mut shown, lacking, cold) = first_look(source, &symbols, now_mono_ms);
        let lacked: Vec<Symbol> = lacking.iter().map(|at| symbols[*at].clone()).collect();
        source.l1.count(
            (symbols.len() - lacked.len() - cold.len()) as u64,
            (lacked.len() + cold.len()) as u64,
        );
        let asked = ask(source, client, &lacked);
        if !cold.is_empty() {
            ask(source, client, &cold);
        }
        let wait_ms = source.wait_ms;
        for (at, symbol) in lacking.into_iter().zip(&lacked) {
            if asked.contains(symbol) {
                shown[at] = Shown::missing(wait_ms, now_mono_ms);
            }
        }
        let version = Version {
            number: 0,
            shown: shown.into(),
            change: None,
            whole: OnceLock::new(),
        };
        Self {
            symbols: symbols.into(),
            group,
            client,
            current: ArcSwap::from_pointee(version),
            asked_mono_ms: AtomicU64::new(now_mono_ms),
        }
    }

    /// Reads the quotes, which keeps them fresh, and makes the event of the changes, with all of a
    /// batch or nothing of it. Returns whether there are any. Runs on the thread `fan-out`.
    fn look(&self, source: QuoteSource<'_>, news: &News) -> bool {
        let now_mono_ms = source.clock.monotonic_ms();
        let current = self.current.load_full();
        let wait_ms = source.wait_ms;
        let (changes, missing) = news.read_whole(BATCH_WAIT, || {
            let mut changes = Vec::new();
            let mut missing = Vec::new();
            let view = source.l1.view(now_mono_ms);
            for (at, (symbol, shown)) in self.symbols.iter().zip(&current.shown).enumerate() {
                let hit = view.get(symbol.as_str());
                if hit.is_none() {
                    missing.push(symbol.clone());
                }
                changes.extend(
                    shown
                        .next(hit.as_ref(), wait_ms, now_mono_ms)
                        .map(|new| (at, new)),
                );
            }
            (changes, missing)
        });
        let has_lost = changes
            .iter()
            .any(|(_, new)| !matches!(new, Shown::Quote { .. }));
        let asked_mono_ms = self.asked_mono_ms.load(Ordering::Relaxed);
        let is_due = has_lost || now_mono_ms >= asked_mono_ms + ASK_AGAIN_MS;
        if is_due && !missing.is_empty() {
            self.asked_mono_ms.store(now_mono_ms, Ordering::Relaxed);
            ask(source, self.client, &missing);
        }
        if changes.is_empty() {
            return false;
        }
        let changed = changes
            .iter()
            .map(|(at, shown)| (&self.symbols[*at], shown));
        let change = Some(CodedFrame::new(&quotes_event(&changed)));
        let mut shown = current.shown.clone();
        for (at, new) in changes {
            shown[at] = new;
        }
        let number = current.number + 1;
        self.current.store(Arc::new(Version {
            number,
            shown,
            change,
            whole: OnceLock::new(),
        }));
        true
    }

    /// The newest frame for a client that has the state `seen`, and sets `seen` to the current
    /// state. `None` if they are equal.
    pub(super) fn newest(&self, seen: &mut Option<u64>, coding: Coding) -> Option<Taken> {
        let current = self.current.load();
        let before = seen.replace(current.number);
        let missed = before.map(|before| current.number - before);
        let (frames, skipped) = match (missed, &current.change) {
            (Some(0), _) => return None,
            (Some(1), Some(change)) => (change, 0),
            (missed, _) => (self.whole(&current), missed.map_or(0, |missed| missed - 1)),
        };
        Some(Taken {
            frame: frames.of(coding).clone(),
            second: None,
            skipped,
        })
    }

    /// Another thread that needs it meanwhile waits for some microseconds.
    fn whole<'a>(&self, version: &'a Version) -> &'a CodedFrame {
        version.whole.get_or_init(|| {
            CodedFrame::new(&quotes_event(&self.symbols.iter().zip(&version.shown)))
        })
    }
}

/// The cached state of each symbol, the numbers of missing ones, which count as unavailable, and
/// the symbols whose quote was not kept fresh. Never inlined: the cache's pin is bound to the
/// thread.
#[inline(never)]
fn first_look(
    source: QuoteSource<'_>,
    symbols: &[Symbol],
    now_mono_ms: u64,
) -> (Vec<Shown>, Vec<usize>, Vec<Symbol>) {
    let (mut shown, mut lacking, mut cold) =
        (Vec::with_capacity(symbols.len()), Vec::new(), Vec::new());
    let view = source.l1.view(now_mono_ms);
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
fn ask(source: QuoteSource<'_>, client: Option<IpAddr>, missing: &[Symbol]) -> Vec<Symbol> {
    let Fetchable { listed, probed } = Fetchable::among(source.instruments, missing);
    let mut asked = Vec::new();
    // The symbols stay registered without a wait.
    if !listed.is_empty() && source.pending.join_listed(&listed).map(drop).is_ok() {
        asked.extend(listed);
    }
    if !probed.is_empty()
        && source
            .pending
            .join_unlisted(client, &probed)
            .map(drop)
            .is_some()
    {
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
        all.clone()
            .filter(move |(_, shown)| is(shown))
            .map(|(symbol, _)| symbol)
    };
    data.extend_from_slice(b"],\"unavailable\":[");
    name(&mut data, named(|shown| matches!(shown, Shown::Unavailable)));
    data.extend_from_slice(b"],\"pending\":[");
    name(&mut data, named(|shown| matches!(shown, Shown::Pending { .. })));
    data.extend_from_slice(b"]}");
    event(QUOTES_EVENT, None, &data)
}

/// Longest time between two reads of the quotes, which become stale without any change in the
/// cache.
const LOOK_MS: u64 = 250;

/// The share of one site in all choices is one in this number. Programs of this machine and trusted
/// proxies have no such limit.
const NETWORK_PART: usize = 10;
/// One in this number is reserved for users who are logged in.
const USERS_PART: usize = 4;

/// The client of a stream, for the limits of choices.
#[derive(Clone, Copy)]
pub(super) struct StreamClient {
    /// Its network, as other limits count it; `None` if it is not known.
    pub(super) client: Option<IpAddr>,
    /// The wider network whose share is limited; `None` if it is not limited.
    pub(super) site: Option<IpAddr>,
    /// Whether a user is logged in.
    pub(super) is_user: bool,
}

/// The choices of all streams.
pub struct Choices {
    by_name: Mutex<HashMap<Box<str>, Entry>>,
    /// Choices made so far, which spreads them over the groups.
    made: AtomicUsize,
    /// Wakes the thread `fan-out` for the first choice.
    news: News,
    /// Streams refused at a limit of choices.
    pub refused: Counter,
    /// Time of the last read of the quotes, and the number of quotes that the cache had stored by
    /// then.
    looked_mono_ms: AtomicU64,
    looked_stored: AtomicU64,
}

struct Entry {
    choice: Arc<Choice>,
    readers: usize,
    /// The network for which the choice counts; `None` if it is not limited.
    site: Option<IpAddr>,
}

impl Choices {
    pub(super) fn new(news: News) -> Self {
        Self {
            by_name: Mutex::default(),
            made: AtomicUsize::new(0),
            news,
            refused: Counter::new(),
            looked_mono_ms: AtomicU64::new(0),
            looked_stored: AtomicU64::new(0),
        }
    }

    /// Number of choices.
    pub fn count(&self) -> usize {
        self.by_name.lock().len()
    }

    /// Adds a stream that shows `symbols`, for a client.
    ///
    /// # Errors
    /// [`StreamsFull`] if the symbols are a new choice and there are already `choices_max`, or the
    /// client's share of them.
    pub(super) fn join(
        self: &Arc<Self>,
        source: QuoteSource<'_>,
        symbols: Vec<Symbol>,
        asker: StreamClient,
        choices_max: usize,
    ) -> Result<Member, StreamsFull> {
        let name = symbols
            .iter()
            .map(Symbol::as_str)
            .collect::<Vec<_>>()
            .join(",");
        let choice = match self.enter(&name, None, asker, choices_max)? {
            Some(choice) => choice,
            None => {
                // Made without the lock. If another stream makes the same choice meanwhile, one is
                // dropped.
                let group = Group::of_content(self.made.fetch_add(1, Ordering::Relaxed));
                let made = Arc::new(Choice::new(source, symbols, group, asker.client));
                let entered = self.enter(&name, Some(&made), asker, choices_max)?;
                self.news.tell();
                entered.unwrap_or(made)
            }
        };
        Ok(Member {
            choices: Arc::clone(self),
            name: name.into(),
            choice,
        })
    }

    /// Counts one more stream of the choice called `name`, which is `made` if there is none yet.
    fn enter(
        &self,
        name: &str,
        made: Option<&Arc<Choice>>,
        asker: StreamClient,
        choices_max: usize,
    ) -> Result<Option<Arc<Choice>>, StreamsFull> {
        let mut by_name = self.by_name.lock();
        if let Some(entry) = by_name.get_mut(name) {
            entry.readers += 1;
            return Ok(Some(Arc::clone(&entry.choice)));
        }
        let reserved = if asker.is_user {
            0
        } else {
            choices_max / USERS_PART
        };
        let has_share = asker.site.is_none_or(|site| {
            let brought = by_name
                .values()
                .filter(|entry| entry.site == Some(site))
                .count();
            brought < (choices_max / NETWORK_PART).max(1)
        });
        if by_name.len() >= choices_max - reserved || !has_share {
            self.refused.increment();
            return Err(StreamsFull);
        }
        if let Some(made) = made {
            let entry = Entry {
                choice: Arc::clone(made),
                readers: 1,
                site: asker.site,
            };
            by_name.insert(name.into(), entry);
        }
        Ok(None)
    }

    /// Makes each choice read its quotes, if any may have changed, group by group. Wakes a group if
    /// some have, or if its streams have something else that `is_new`.
    pub(super) fn look(&self, source: QuoteSource<'_>, is_new: bool, wake: &mut dyn FnMut(Group)) {
        let now_mono_ms = source.clock.monotonic_ms();
        let stored = source.l1.stored();
        let is_due = now_mono_ms >= self.looked_mono_ms.load(Ordering::Relaxed) + LOOK_MS;
        let may_differ = is_due || self.looked_stored.load(Ordering::Relaxed) != stored;
        if !may_differ && !is_new {
            return;
        }
        if may_differ {
            self.looked_mono_ms.store(now_mono_ms, Ordering::Relaxed);
            self.looked_stored.store(stored, Ordering::Relaxed);
        }
        let mut all: Vec<Arc<Choice>> = self
            .by_name
            .lock()
            .values()
            .map(|entry| Arc::clone(&entry.choice))
            .collect();
        all.sort_unstable_by_key(|choice| choice.group);
        for group in all.chunk_by(|one, next| one.group == next.group) {
            let changes = group
                .iter()
                .filter(|choice| may_differ && choice.look(source, &self.news));
            if changes.count() > 0 || is_new {
                wake(group[0].group);
            }
        }
    }
}

/// A stream's share in a choice. The choice is removed with its last stream.
pub(super) struct Member {
    choices: Arc<Choices>,
    name: Box<str>,
    pub(super) choice: Arc<Choice>,
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut by_name = self.choices.by_name.lock();
        if let Some(entry) = by_name.get_mut(&self.name) {
            entry.readers -= 1;
            if entry.readers == 0 {
                by_name.remove(&self.name);
            }
        }
    }
}
