//! The choices of symbols that open streams show, each once, however many streams share it.
//!
//! Streams join and leave on the edge; the lock is held for a look-up. The thread `fan-out` lets
//! each choice look at its quotes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::choice::Choice;
use crate::api::state::State;
use crate::base::Symbol;
use crate::http::StreamsFull;
use crate::ops::Counter;
use crate::rt::News;

/// Longest time between two looks. In it quotes may become stale without anything being stored.
const LOOK_MS: u64 = 250;

/// Of all choices, those that one site has brought may be one in so many. Programs of this machine
/// and trusted proxies are not limited so.
const NETWORK_PART: usize = 10;
/// One in so many is left to users who are logged in.
const USERS_PART: usize = 4;

/// Whose a stream is, as far as its share goes.
#[derive(Clone, Copy)]
pub(super) struct Asker {
    /// Its network, as other limits count it; `None` if it is not known.
    pub(super) client: Option<IpAddr>,
    /// The wider network whose share is limited; `None` where it is not.
    pub(super) site: Option<IpAddr>,
    /// Whether a user is logged in.
    pub(super) is_user: bool,
}

/// The choices of all streams.
pub struct Choices {
    by_name: Mutex<HashMap<Box<str>, Entry>>,
    /// Tells the thread `fan-out` of the first one.
    news: News,
    refused: Counter,
    /// When the quotes were looked at last, and how many the cache had stored by then.
    looked_mono_ms: AtomicU64,
    looked_stored: AtomicU64,
}

struct Entry {
    choice: Arc<Choice>,
    readers: usize,
    /// The network that brought it, which it counts for; `None` where that is not limited.
    site: Option<IpAddr>,
}

impl Choices {
    pub(super) fn new(news: News) -> Self {
        Self {
            by_name: Mutex::default(),
            news,
            refused: Counter::new(),
            looked_mono_ms: AtomicU64::new(0),
            looked_stored: AtomicU64::new(0),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.by_name.lock().len()
    }

    /// Streams refused because there were as many as may be.
    pub fn refused(&self) -> u64 {
        self.refused.value()
    }

    /// Adds a stream that shows `symbols`, for a client.
    ///
    /// # Errors
    /// [`StreamsFull`] if these are not among the choices and there are `choices_max`, or the
    /// asker's share of them.
    pub(super) fn join(
        self: &Arc<Self>,
        state: &State,
        symbols: Vec<Symbol>,
        asker: Asker,
        choices_max: usize,
    ) -> Result<Member, StreamsFull> {
        let name = symbols.iter().map(Symbol::as_str).collect::<Vec<_>>().join(",");
        let choice = match self.enter(&name, None, asker, choices_max)? {
            Some(choice) => choice,
            None => {
                // Made without the lock. If another stream makes the same meanwhile, one is
                // dropped.
                let made = Arc::new(Choice::new(state, symbols, asker.client));
                let entered = self.enter(&name, Some(&made), asker, choices_max)?;
                self.news.tell();
                entered.unwrap_or(made)
            }
        };
        Ok(Member { choices: Arc::clone(self), name: name.into(), choice })
    }

    /// Counts one more stream of the choice called `name`, which is `made` if there is none yet.
    fn enter(
        &self,
        name: &str,
        made: Option<&Arc<Choice>>,
        asker: Asker,
        choices_max: usize,
    ) -> Result<Option<Arc<Choice>>, StreamsFull> {
        let mut by_name = self.by_name.lock();
        if let Some(entry) = by_name.get_mut(name) {
            entry.readers += 1;
            return Ok(Some(Arc::clone(&entry.choice)));
        }
        let reserved = if asker.is_user { 0 } else { choices_max / USERS_PART };
        let has_share = asker.site.is_none_or(|site| {
            let brought = by_name.values().filter(|entry| entry.site == Some(site)).count();
            brought < (choices_max / NETWORK_PART).max(1)
        });
        if by_name.len() >= choices_max - reserved || !has_share {
            self.refused.increment();
            return Err(StreamsFull);
        }
        if let Some(made) = made {
            let entry = Entry { choice: Arc::clone(made), readers: 1, site: asker.site };
            by_name.insert(name.into(), entry);
        }
        Ok(None)
    }

    /// Lets each choice look at its quotes if any may have changed. Returns whether some have.
    pub(super) fn look(&self, state: &State) -> bool {
        let (now_mono_ms, stored) = (state.clock.monotonic_ms(), state.l1.stored());
        let is_due = now_mono_ms >= self.looked_mono_ms.load(Ordering::Relaxed) + LOOK_MS;
        if !is_due && self.looked_stored.load(Ordering::Relaxed) == stored {
            return false;
        }
        self.looked_mono_ms.store(now_mono_ms, Ordering::Relaxed);
        self.looked_stored.store(stored, Ordering::Relaxed);
        let all: Vec<Arc<Choice>> =
            self.by_name.lock().values().map(|entry| Arc::clone(&entry.choice)).collect();
        let mut changed = false;
        for choice in all {
            changed |= choice.look(state);
        }
        changed
    }
}

/// A stream's part in a choice, which ends with its last stream.
pub(super) struct Member {
    choices: Arc<Choices>,
    name: Box<str>,
    choice: Arc<Choice>,
}

impl Member {
    pub(super) fn choice(&self) -> &Choice {
        &self.choice
    }
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
