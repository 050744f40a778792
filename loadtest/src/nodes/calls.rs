//! Which node made which call to broker A's quotes, and when: what the simulator is asked, seen on
//! the way there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::link::{Tap, Way};

/// How a request for quotes begins. A connection has one request under way at a time, so each
/// begins with what is read.
const REQUEST: &[u8] = b"GET /a/quote";
const REFUSED: &[u8] = b"HTTP/1.1 429";

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Since the beginning of the run.
    pub at_ms: u64,
    pub node: usize,
    pub refused: bool,
}

/// All calls so far.
pub struct Calls {
    began: Instant,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    calls: Vec<Call>,
    /// The call that waits for its answer on a connection of a node.
    waiting: HashMap<(usize, u64), usize>,
}

impl Calls {
    pub fn since(began: Instant) -> Arc<Self> {
        Arc::new(Self { began, known: Mutex::default() })
    }

    /// For the way of a node to the simulator.
    pub fn tap(self: &Arc<Self>, node: usize) -> Tap {
        let calls = Arc::clone(self);
        Arc::new(move |way, connection, bytes| calls.saw(node, way, connection, bytes))
    }

    pub fn all(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    fn saw(&self, node: usize, way: Way, connection: u64, bytes: &[u8]) {
        let mut known = self.lock();
        if way == Way::ToServer && bytes.starts_with(REQUEST) {
            let at_ms = super::world::elapsed_ms(self.began);
            let number = known.calls.len();
            known.calls.push(Call { at_ms, node, refused: false });
            known.waiting.insert((node, connection), number);
        } else if way == Way::ToNode
            && let Some(number) = known.waiting.remove(&(node, connection))
            && let Some(call) = known.calls.get_mut(number)
        {
            call.refused = bytes.starts_with(REFUSED);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
