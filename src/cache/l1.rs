//! L1, the first cache level: quotes in memory, already serialised, read on the edge without a
//! lock.
//!
//! Readers are coroutines. A reader takes a [`View`], copies what it needs and drops the view
//! before anything that can suspend. Writers are lane threads; a lock orders them, and readers
//! never take it. Nothing here calls an upstream or reads a clock. Callers pass the time, in
//! milliseconds of [`Clock::monotonic_ms`](crate::base::Clock::monotonic_ms).
//!
//! Every document shows the quotes of L1. Of two quotes for a symbol it keeps the one with the
//! later time, and [`Freshness`] decides which are stale.

use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use foldhash::quality::RandomState;
use jiff::Timestamp;
use papaya::{HashMap, LocalGuard};
use parking_lot::Mutex;

use crate::base::{Quote, Source, Symbol};
use crate::cache::entry::{Entry, Known, Peek, State, second};
use crate::cache::freshness::CacheSettings;
use crate::views::quotes;

pub(crate) use super::freshness::Freshness;
pub use super::freshness::{Limits, Vouched};

/// The cached quotes and the symbols known not to exist, at most `entries_max` together.
pub struct L1 {
    map: HashMap<Symbol, Entry, RandomState>,
    writer: Mutex<Writer>,
    entries_max: usize,
    /// Symbols that are never evicted: those of the snapshot.
    pinned: Vec<Symbol>,
    /// A symbol that a client asked for within this time is kept fresh.
    demand_ttl_s: u32,
    freshness: Freshness,
    reads: ReadCounters,
    evictions: AtomicU64,
    refused: AtomicU64,
    ahead: AtomicU64,
    /// Entries stored so far.
    stored: AtomicU64,
    /// Size of all entries. Writers change it under their lock.
    bytes: AtomicUsize,
}

/// State of the writers, behind the lock that orders them.
struct Writer {
    /// Every key of the map that is not pinned, in no order. A sample for eviction is drawn from
    /// it.
    keys: Vec<Symbol>,
    /// Number of entries with a pinned key.
    pinned: usize,
    negatives: usize,
    random: fastrand::Rng,
}

/// Counters that every request writes. They have cache lines of their own, so that writing them
/// does not slow down readers.
#[repr(align(128))]
#[derive(Default)]
struct ReadCounters {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Result of a look-up that found an entry.
#[derive(Debug, PartialEq, Eq)]
pub enum Hit<'v> {
    /// A quote: its JSON object up to `"stale":`, which [`Hit::write`] completes. `cold` means that
    /// it is stale and that no client asked for it lately, so nothing refreshes it.
    Known {
        json: &'v [u8],
        stale: bool,
        cold: bool,
    },
    /// Looked up lately, and no source knows it.
    Unknown,
}

impl Hit<'_> {
    /// Appends the whole JSON object and returns true. For an unknown symbol it appends nothing and
    /// returns false.
    pub fn write(&self, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Known { json, stale, .. } => {
                out.extend_from_slice(json);
                out.extend_from_slice(quotes::closing(*stale));
                true
            }
            Self::Unknown => false,
        }
    }
}

/// Counters that health and metrics show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L1Stats {
    /// Number of entries: quotes and negative entries.
    pub size: usize,
    /// Approximate memory of the entries, without the map's own table.
    pub bytes: usize,
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    /// Quotes refused because one of a later time was held.
    pub refused: u64,
    /// Quotes refused because they were ahead of this node's clock, whatever their source.
    pub ahead: u64,
}

/// The outcome of [`L1::insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was stored.
    Taken,
    /// Its time is earlier than that of the quote held, but source and price are the same. So the
    /// source vouches for the held price now.
    Confirmed,
    /// It was dropped because its time is earlier than that of the quote held.
    Refused,
}

/// Several look-ups under one pin of the map. A view belongs to its thread and is not `Send`. A
/// coroutine must drop it before it reads, writes, parks or sleeps, because it may wake on another
/// thread.
pub struct View<'a> {
    l1: &'a L1,
    guard: LocalGuard<'a>,
    now_mono_ms: u64,
}

impl View<'_> {
    /// The entry of `symbol`, which counts as asked for; `None` is a miss. Never allocates or
    /// waits. The counters are not changed: report the whole request once with [`L1::count`].
    pub fn get(&self, symbol: &str) -> Option<Hit<'_>> {
        self.look(symbol, true)
    }

    /// Same as [`get`](Self::get), for a request that can wait for a cold quote. A cold quote
    /// counts as asked for only after the wait, so that concurrent requests wait for it too.
    pub(crate) fn ask(&self, symbol: &str) -> Option<Hit<'_>> {
        self.look(symbol, false)
    }

    fn look(&self, symbol: &str, has_waited: bool) -> Option<Hit<'_>> {
        let entry = self.l1.map.get(symbol, &self.guard)?;
        match &entry.state {
            State::Known(known) => {
                let stale = self.l1.is_stale(known, self.now_mono_ms);
                let cold = stale && !entry.asked_since(self.l1.demand_since_s(self.now_mono_ms));
                if has_waited || !cold {
                    entry.touch(self.now_mono_ms);
                }
                Some(Hit::Known {
                    json: &known.json,
                    stale,
                    cold,
                })
            }
            State::Unknown { until_mono_ms } if self.now_mono_ms < *until_mono_ms => {
                entry.touch(self.now_mono_ms);
                Some(Hit::Unknown)
            }
            State::Unknown { .. } => None,
        }
    }
}

impl L1 {
    /// An empty cache of at most `entries_max` entries (at least one), with no pinned symbols.
    pub fn new(entries_max: usize) -> Self {
        let settings = CacheSettings {
            l1_entries_max: entries_max,
            ..CacheSettings::default()
        };
        Self::of(&settings, [])
    }

    /// An empty cache that never evicts the `pinned` symbols. They count as entries.
    pub(crate) fn of(settings: &CacheSettings, pinned: impl IntoIterator<Item = Symbol>) -> Self {
        let entries_max = settings.l1_entries_max.max(1);
        let hasher = RandomState::default();
        let seed = std::hash::BuildHasher::hash_one(&hasher, entries_max);
        Self {
            map: HashMap::with_capacity_and_hasher(entries_max, hasher),
            writer: Mutex::new(Writer {
                keys: Vec::new(),
                pinned: 0,
                negatives: 0,
                random: fastrand::Rng::with_seed(seed),
            }),
            entries_max,
            pinned: pinned.into_iter().collect(),
            demand_ttl_s: u32::try_from(settings.demand_ttl_ms.div_ceil(1_000)).unwrap_or(u32::MAX),
            freshness: Freshness::default(),
            reads: ReadCounters::default(),
            evictions: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
            stored: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// A view for the look-ups of one request at `now_mono_ms`. It pins the map.
    ///
    /// Never inlined, like everything that pins: the pin takes the address of a thread-local, and a
    /// caller with look-ups before and after a suspension must not reuse that address.
    #[inline(never)]
    pub fn view(&self, now_mono_ms: u64) -> View<'_> {
        View {
            l1: self,
            guard: self.map.guard(),
            now_mono_ms,
        }
    }

    /// Adds one request's look-ups to the counters.
    pub fn count(&self, hits: u64, misses: u64) {
        if hits > 0 {
            self.reads.hits.fetch_add(hits, Relaxed);
        }
        if misses > 0 {
            self.reads.misses.fetch_add(misses, Relaxed);
        }
    }

    /// The rule that decides which quotes are stale.
    pub fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// Whether the quote's time is ahead of this node's wall clock. Such a quote must not be
    /// stored: until that time it would keep out every true one. Counts it. Everything that stores
    /// quotes calls this first.
    pub(crate) fn refuses_ahead(&self, quote: &Quote, now: Timestamp) -> bool {
        let is_ahead = Quote::is_ahead(quote.as_of, now);
        self.count_ahead(u64::from(is_ahead));
        is_ahead
    }

    /// Counts prices that were refused as ahead before a quote was made of them.
    pub(crate) fn count_ahead(&self, count: u64) {
        self.ahead.fetch_add(count, Relaxed);
    }

    /// Stores a quote that its source vouches for as of `vouched`, unless one of a later time is
    /// held: the time shown for a symbol never goes back. If two sources give the same time, the
    /// fresh quote is kept; if both are fresh, broker A's is.
    #[inline(never)]
    pub fn insert(&self, quote: Quote, vouched: Vouched, now_mono_ms: u64) -> Kept {
        let mut writer = self.writer.lock();
        let guard = self.map.guard();
        let mut asked_s = 0;
        match self.map.get(&quote.symbol, &guard) {
            Some(entry) => {
                match &entry.state {
                    State::Known(held) => {
                        if !self.replaces(held, &quote, vouched, now_mono_ms) {
                            return self.keep_held(held, &quote, vouched);
                        }
                    }
                    State::Unknown { .. } => writer.negatives -= 1,
                }
                asked_s = entry.asked_s.load(Relaxed);
            }
            None => self.make_room(&mut writer, &guard, &quote.symbol, now_mono_ms),
        }
        let symbol = quote.symbol.clone();
        let json = quotes::open_object(&quote);
        let Vouched { mono_ms, calls } = vouched;
        let known = Known {
            quote,
            json,
            vouched_mono_ms: mono_ms.into(),
            calls,
        };
        let entry = Entry {
            state: State::Known(known),
            asked_s: AtomicU32::new(asked_s),
        };
        self.put(symbol, entry, &guard);
        Kept::Taken
    }

    fn keep_held(&self, held: &Known, quote: &Quote, vouched: Vouched) -> Kept {
        if held.quote.source == quote.source && held.quote.last_price == quote.last_price {
            held.vouched_mono_ms.fetch_max(vouched.mono_ms, Relaxed);
            return Kept::Confirmed;
        }
        self.refused.fetch_add(1, Relaxed);
        Kept::Refused
    }

    /// Remembers until `until_mono_ms` that no source knows `symbol`. A quote that is held stays,
    /// because a source may leave a known instrument out of one answer. Returns whether the entry
    /// was made.
    #[inline(never)]
    pub(crate) fn insert_unknown(
        &self,
        symbol: Symbol,
        now_mono_ms: u64,
        until_mono_ms: u64,
    ) -> bool {
        let mut writer = self.writer.lock();
        let guard = self.map.guard();
        match self.map.get(&symbol, &guard) {
            Some(Entry {
                state: State::Known(_),
                ..
            }) => return false,
            Some(_) => {}
            None => {
                self.make_room(&mut writer, &guard, &symbol, now_mono_ms);
                writer.negatives += 1;
            }
        }
        // A client asked just now, otherwise the symbol would not have been looked up.
        let asked_s = AtomicU32::new(second(now_mono_ms));
        let entry = Entry {
            state: State::Unknown { until_mono_ms },
            asked_s,
        };
        self.put(symbol, entry, &guard);
        true
    }

    /// The symbols with a quote that clients asked for lately, at most `max`. Those asked for last
    /// come first, and of those asked for within the same `alike_s` seconds the one with the oldest
    /// quote. Walks the whole map, so it is called by a warmer and not on the edge.
    #[inline(never)]
    pub fn wanted(&self, now_mono_ms: u64, alike_s: u32, max: usize) -> Vec<Symbol> {
        let now_s = second(now_mono_ms);
        let since_s = self.demand_since_s(now_mono_ms);
        let guard = self.map.guard();
        let mut asked: Vec<(u32, i64, &Symbol)> = Vec::new();
        for (symbol, entry) in self.map.iter(&guard) {
            let State::Known(known) = &entry.state else {
                continue;
            };
            if entry.asked_since(since_s) {
                let ago_s = now_s.saturating_sub(entry.asked_s.load(Relaxed));
                asked.push((ago_s / alike_s.max(1), known.vouched().mono_ms, symbol));
            }
        }
        asked.sort_unstable();
        asked.truncate(max);
        asked
            .into_iter()
            .map(|(_, _, symbol)| symbol.clone())
            .collect()
    }

    /// Whether [`insert`](Self::insert) would store the quote.
    #[inline(never)]
    pub(crate) fn takes(&self, quote: &Quote, vouched: Vouched, now_mono_ms: u64) -> bool {
        let guard = self.map.guard();
        match self
            .map
            .get(&quote.symbol, &guard)
            .map(|entry| &entry.state)
        {
            Some(State::Known(held)) => self.replaces(held, quote, vouched, now_mono_ms),
            Some(State::Unknown { .. }) | None => true,
        }
    }

    /// A copy of the quote held for `symbol`, stale or not. Does not count as asked for.
    #[cfg(test)]
    pub(crate) fn quote(&self, symbol: &str) -> Option<Quote> {
        let guard = self.map.guard();
        match &self.map.get(symbol, &guard)?.state {
            State::Known(known) => Some(known.quote.clone()),
            State::Unknown { .. } => None,
        }
    }

    /// A copy of what is known about `symbol`. Does not count as asked for.
    #[inline(never)]
    pub fn peek(&self, symbol: &str, now_mono_ms: u64) -> Peek {
        let guard = self.map.guard();
        match self.map.get(symbol, &guard).map(|entry| &entry.state) {
            Some(State::Known(known)) => {
                let source = known.quote.source;
                let vouched = known.vouched();
                Peek::Known {
                    quote: known.quote.clone(),
                    stale: self.freshness.is_stale(source, vouched, now_mono_ms),
                    vouched,
                    fresh_until_mono_ms: self.freshness.until_mono_ms(source, vouched),
                }
            }
            Some(State::Unknown { until_mono_ms }) if now_mono_ms < *until_mono_ms => Peek::Unknown,
            Some(State::Unknown { .. }) | None => Peek::Missing,
        }
    }

    /// A copy of the quote of `symbol`, stale or not. Does not count as asked for.
    pub(crate) fn held(&self, symbol: &Symbol, now_mono_ms: u64) -> Option<Quote> {
        match self.peek(symbol.as_str(), now_mono_ms) {
            Peek::Known { quote, .. } => Some(quote),
            Peek::Unknown | Peek::Missing => None,
        }
    }

    /// Counts `symbol` as asked for, if it has an entry.
    #[inline(never)]
    pub(crate) fn touch(&self, symbol: &str, now_mono_ms: u64) {
        let guard = self.map.guard();
        if let Some(entry) = self.map.get(symbol, &guard) {
            entry.touch(now_mono_ms);
        }
    }

    /// Number of entries stored so far. While it does not change, an entry can only become stale,
    /// be confirmed or expire.
    pub fn stored(&self) -> u64 {
        self.stored.load(Relaxed)
    }

    /// Sizes and counters. Each is exact, but they are not all of the same instant.
    pub fn stats(&self) -> L1Stats {
        L1Stats {
            size: self.map.len(),
            bytes: self.bytes.load(Relaxed),
            hits: self.reads.hits.load(Relaxed),
            misses: self.reads.misses.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            refused: self.refused.load(Relaxed),
            ahead: self.ahead.load(Relaxed),
        }
    }

    fn is_stale(&self, known: &Known, now_mono_ms: u64) -> bool {
        self.freshness
            .is_stale(known.quote.source, known.vouched(), now_mono_ms)
    }

    /// Requests at or after this second, counted as by `second`, keep a quote fresh.
    #[inline]
    fn demand_since_s(&self, now_mono_ms: u64) -> u32 {
        second(now_mono_ms).saturating_sub(self.demand_ttl_s)
    }

    /// Whether `new` replaces `held`: its time is later, or the same and its source is better.
    fn replaces(&self, held: &Known, new: &Quote, vouched: Vouched, now_mono_ms: u64) -> bool {
        match new.as_of.cmp(&held.quote.as_of) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal if held.quote.source == new.source => {
                vouched.mono_ms >= held.vouched().mono_ms
            }
            Ordering::Equal => {
                let rank = |source: Source, stale: bool| (!stale, source == Source::BrokerA);
                let stale = self.freshness.is_stale(new.source, vouched, now_mono_ms);
                let held_stale = self.is_stale(held, now_mono_ms);
                rank(new.source, stale) > rank(held.quote.source, held_stale)
            }
        }
    }

    /// Stores an entry, replacing the one that was there.
    fn put(&self, symbol: Symbol, entry: Entry, guard: &LocalGuard<'_>) {
        let symbol_bytes = symbol.as_str().len();
        self.bytes.fetch_add(entry.bytes(symbol_bytes), Relaxed);
        if let Some(held) = self.map.insert(symbol, entry, guard) {
            self.bytes.fetch_sub(held.bytes(symbol_bytes), Relaxed);
        }
        self.stored.fetch_add(1, Relaxed);
    }
}

// ---- Room
//
// Eviction from L1: keeps the bound on entries and chooses what to evict. Called by writers only,
// under their lock.

/// Entries sampled to choose one to evict. The one of them that was asked for longest ago is, on
/// average, among the oldest twentieth. A sample costs the writer about a microsecond.
const EVICTION_SAMPLE: usize = 16;

impl L1 {
    /// Adds `symbol` to the keys unless it is pinned, and evicts entries while the bound is
    /// reached.
    fn make_room(
        &self,
        writer: &mut Writer,
        guard: &LocalGuard<'_>,
        symbol: &Symbol,
        now_mono_ms: u64,
    ) {
        while !writer.keys.is_empty() && writer.keys.len() + writer.pinned >= self.entries_max {
            let at = self.victim(writer, guard, now_mono_ms);
            let evicted = writer.keys.swap_remove(at);
            if let Some(entry) = self.map.remove(&evicted, guard) {
                self.bytes
                    .fetch_sub(entry.bytes(evicted.as_str().len()), Relaxed);
                writer.negatives -= usize::from(matches!(entry.state, State::Unknown { .. }));
            }
            self.evictions.fetch_add(1, Relaxed);
        }
        match self.pinned.contains(symbol) {
            true => writer.pinned += 1,
            false => writer.keys.push(symbol.clone()),
        }
    }

    /// Index in `keys` of the entry to evict, chosen from a random sample. An expired negative
    /// entry goes first. While negative entries fill more than half of the cache, any of them goes
    /// next, so that invented symbols cannot drive out quotes. Otherwise the one that was asked for
    /// or received longest ago goes.
    fn victim(&self, writer: &mut Writer, guard: &LocalGuard<'_>, now_mono_ms: u64) -> usize {
        let crowded = writer.negatives > self.entries_max / 2;
        let mut least = (u8::MAX, u32::MAX);
        let mut least_at = 0;
        for _ in 0..EVICTION_SAMPLE {
            let at = writer.random.usize(..writer.keys.len());
            let Some(entry) = self.map.get(&writer.keys[at], guard) else {
                return at;
            };
            let asked_s = entry.asked_s.load(Relaxed);
            let worth = match &entry.state {
                State::Unknown { until_mono_ms } if *until_mono_ms <= now_mono_ms => (0, asked_s),
                State::Unknown { .. } if crowded => (1, asked_s),
                State::Unknown { .. } => (2, asked_s),
                State::Known(known) => {
                    let vouched_ms = u64::try_from(known.vouched().mono_ms).unwrap_or_default();
                    (2, asked_s.max(second(vouched_ms)))
                }
            };
            if worth < least {
                (least, least_at) = (worth, at);
            }
        }
        least_at
    }
}

#[cfg(test)]
#[path = "l1_tests.rs"]
mod tests;
