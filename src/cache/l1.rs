//! The first level: quotes in memory, already serialised, read on the edge without a lock.
//!
//! Readers are coroutines; they take a [`View`], copy out what they need and drop it before
//! anything that can suspend. Writers are lane threads; one lock orders them among themselves and
//! readers never see it. Nothing here calls an upstream or reads a clock: time is handed in, in
//! milliseconds of [`Clock::monotonic_ms`](crate::base::Clock::monotonic_ms).
//!
//! Whatever is shown of a symbol, anywhere, is what stands here: of two prices the one with the
//! later time, and stale where [`Freshness`] says so.

mod entry;
mod room;

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use foldhash::quality::RandomState;
use papaya::{HashMap, LocalGuard};
use parking_lot::Mutex;

pub use self::entry::Peek;
use self::entry::{Entry, Known, State, second};
pub use super::freshness::{Freshness, Limits, Vouched};
use super::settings::CacheSettings;
use crate::base::{Quote, Source, Symbol};
use crate::views::quotes;

/// The quotes and the symbols known not to exist, at most `entries_max` together.
pub struct L1 {
    map: HashMap<Symbol, Entry, RandomState>,
    writer: Mutex<Writer>,
    entries_max: usize,
    /// Never evicted: what the snapshot shows.
    pinned: Vec<Symbol>,
    /// What clients asked for within this time is kept fresh.
    demand_ttl_s: u32,
    freshness: Freshness,
    reads: ReadCounters,
    evictions: AtomicU64,
    refused: AtomicU64,
    /// Of all entries; writers change it under their lock.
    bytes: AtomicUsize,
}

/// What only writers need, and what makes them take turns.
struct Writer {
    /// Every key of the map that is not pinned, in no order, to draw a sample from.
    keys: Vec<Symbol>,
    /// Entries of pinned keys.
    pinned: usize,
    negatives: usize,
    random: fastrand::Rng,
}

/// Written by every request: on cache lines that no reader needs for anything else.
#[repr(align(128))]
#[derive(Default)]
struct ReadCounters {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// One answer of the cache.
#[derive(Debug, PartialEq, Eq)]
pub enum Hit<'v> {
    /// A quote: its JSON object, open after `"stale":`. [`Hit::write`] closes it. `cold`: it is
    /// stale, and nobody asked for it lately, so nobody keeps it fresh.
    Known { json: &'v [u8], stale: bool, cold: bool },
    /// Looked up lately and known to no source.
    Unknown,
}

impl Hit<'_> {
    /// Appends the whole JSON object; an unknown symbol has none, so nothing is appended and the
    /// answer is `false`.
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

/// What health and metrics show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L1Stats {
    /// Quotes and negative entries.
    pub size: usize,
    /// Memory that they take, about: without the map's own table.
    pub bytes: usize,
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    /// Quotes not taken because one of a later time was held.
    pub refused: u64,
}

/// What became of a quote that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It stands now.
    Taken,
    /// It is of an earlier time than the one held, but of the same source and price: the source
    /// stands for that price now.
    Confirmed,
    /// It is of an earlier time than the one held.
    Refused,
}

/// Many look-ups under one pin. Belongs to the thread it was made on and is not `Send`: a coroutine
/// must drop it before it reads, writes, parks or sleeps, for it may wake on another thread.
pub struct View<'a> {
    l1: &'a L1,
    guard: LocalGuard<'a>,
    now_mono_ms: u64,
}

impl View<'_> {
    /// The entry of `symbol`, noting that it was asked for; `None` is a miss. Neither allocates nor
    /// waits. Counts nothing: report the whole request once with [`L1::count`].
    pub fn get(&self, symbol: &str) -> Option<Hit<'_>> {
        self.look(symbol, true)
    }

    /// The same for a request that can wait for what is cold. That it asked for such a quote is
    /// noted only once it has waited, so that others wait with it.
    pub fn ask(&self, symbol: &str) -> Option<Hit<'_>> {
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
                Some(Hit::Known { json: &known.json, stale, cold })
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
    /// An empty cache of at most `entries_max` entries (at least one), none of them pinned.
    pub fn new(entries_max: usize) -> Self {
        let settings = CacheSettings { l1_entries_max: entries_max, ..CacheSettings::default() };
        Self::of(&settings, [])
    }

    /// An empty cache that keeps `pinned` symbols whatever else comes; they count as entries.
    pub fn of(settings: &CacheSettings, pinned: impl IntoIterator<Item = Symbol>) -> Self {
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
            bytes: AtomicUsize::new(0),
        }
    }

    /// Pins the map for the look-ups of one request at `now_mono_ms`.
    ///
    /// Never inlined, like all that pins: the pin takes the address of a thread-local, and a caller
    /// that looks before and after a suspension must not have that address computed once for both.
    #[inline(never)]
    pub fn view(&self, now_mono_ms: u64) -> View<'_> {
        View { l1: self, guard: self.map.guard(), now_mono_ms }
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

    /// The rule by which its quotes are stale.
    pub fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// Takes a quote in for which its source stands as of `vouched`, unless one of a later time is
    /// held: what is shown of a symbol never goes back. Of two sources that give the same time the
    /// one that is fresh is shown, and of two fresh ones broker A.
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
        let known = Known { quote, json, vouched_mono_ms: mono_ms.into(), calls };
        let entry = Entry { state: State::Known(known), asked_s: AtomicU32::new(asked_s) };
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

    /// Remembers until `until_mono_ms` that no source knows `symbol`. A quote that is held stays: a
    /// source that leaves a known instrument out of one answer does not erase its last price. Says
    /// whether the entry was made.
    #[inline(never)]
    pub fn insert_unknown(&self, symbol: Symbol, now_mono_ms: u64, until_mono_ms: u64) -> bool {
        let mut writer = self.writer.lock();
        let guard = self.map.guard();
        match self.map.get(&symbol, &guard) {
            Some(Entry { state: State::Known(_), .. }) => return false,
            Some(_) => {}
            None => {
                self.make_room(&mut writer, &guard, &symbol, now_mono_ms);
                writer.negatives += 1;
            }
        }
        // Somebody asked just now, or it would not have been looked up.
        let asked_s = AtomicU32::new(second(now_mono_ms));
        let entry = Entry { state: State::Unknown { until_mono_ms }, asked_s };
        self.put(symbol, entry, &guard);
        true
    }

    /// The symbols with a quote that clients asked for lately, at most `max`: those asked for
    /// latest first, and among equals those whose quote is oldest. Walks the whole map, so it is
    /// for a warmer's round, not for the edge.
    #[inline(never)]
    pub fn wanted(&self, now_mono_ms: u64, max: usize) -> Vec<Symbol> {
        let since_s = self.demand_since_s(now_mono_ms);
        let guard = self.map.guard();
        let mut asked: Vec<(std::cmp::Reverse<u32>, i64, &Symbol)> = Vec::new();
        for (symbol, entry) in self.map.iter(&guard) {
            let State::Known(known) = &entry.state else { continue };
            if entry.asked_since(since_s) {
                let asked_s = entry.asked_s.load(Relaxed);
                asked.push((std::cmp::Reverse(asked_s), known.vouched().mono_ms, symbol));
            }
        }
        asked.sort_unstable();
        asked.truncate(max);
        asked.into_iter().map(|(_, _, symbol)| symbol.clone()).collect()
    }

    /// Whether [`insert`](Self::insert) would take a quote in.
    #[inline(never)]
    pub fn takes(&self, quote: &Quote, vouched: Vouched, now_mono_ms: u64) -> bool {
        let guard = self.map.guard();
        match self.map.get(&quote.symbol, &guard).map(|entry| &entry.state) {
            Some(State::Known(held)) => self.replaces(held, quote, vouched, now_mono_ms),
            Some(State::Unknown { .. }) | None => true,
        }
    }

    /// A copy of the quote held for `symbol`, stale or not; not counted as asked for.
    #[cfg(test)]
    pub fn quote(&self, symbol: &str) -> Option<Quote> {
        let guard = self.map.guard();
        match &self.map.get(symbol, &guard)?.state {
            State::Known(known) => Some(known.quote.clone()),
            State::Unknown { .. } => None,
        }
    }

    /// What is known of `symbol`, as a copy; not counted as asked for.
    #[inline(never)]
    pub fn peek(&self, symbol: &str, now_mono_ms: u64) -> Peek {
        let guard = self.map.guard();
        match self.map.get(symbol, &guard).map(|entry| &entry.state) {
            Some(State::Known(known)) => {
                let (source, vouched) = (known.quote.source, known.vouched());
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

    /// Counts `symbol` as asked for, where there is an entry of it.
    #[inline(never)]
    pub fn touch(&self, symbol: &str, now_mono_ms: u64) {
        let guard = self.map.guard();
        if let Some(entry) = self.map.get(symbol, &guard) {
            entry.touch(now_mono_ms);
        }
    }

    /// Sizes and counters, each exact, not all of one instant.
    pub fn stats(&self) -> L1Stats {
        L1Stats {
            size: self.map.len(),
            bytes: self.bytes.load(Relaxed),
            hits: self.reads.hits.load(Relaxed),
            misses: self.reads.misses.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            refused: self.refused.load(Relaxed),
        }
    }

    fn is_stale(&self, known: &Known, now_mono_ms: u64) -> bool {
        self.freshness.is_stale(known.quote.source, known.vouched(), now_mono_ms)
    }

    /// The second, counted as in entries, since which whoever asked keeps a quote fresh.
    #[inline]
    fn demand_since_s(&self, now_mono_ms: u64) -> u32 {
        second(now_mono_ms).saturating_sub(self.demand_ttl_s)
    }

    /// Whether `new` takes the place of `held`: it is of a later time, or of the same and better.
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

    /// Puts an entry in the place of what was there.
    fn put(&self, symbol: Symbol, entry: Entry, guard: &LocalGuard<'_>) {
        let symbol_bytes = symbol.as_str().len();
        self.bytes.fetch_add(entry.bytes(symbol_bytes), Relaxed);
        if let Some(held) = self.map.insert(symbol, entry, guard) {
            self.bytes.fetch_sub(held.bytes(symbol_bytes), Relaxed);
        }
    }
}

#[cfg(test)]
#[path = "l1_tests.rs"]
mod tests;
