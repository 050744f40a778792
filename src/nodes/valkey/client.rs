//! One connection for calls, opened anew when it broke. Every call ends by its deadline, and while
//! the server is away most end at once.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::RedisResult;

use crate::nodes::valkey::connection::{Connection, ValkeyError};
use crate::nodes::valkey::dial::Server;
use crate::nodes::valkey::keys::KeptKey;
use crate::rt::outbound::BackOff;
use crate::views::states::CacheBackend;

/// Deadlines of calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    /// Deadline for opening a connection and logging in, part of the call's time.
    pub(crate) connect_ms: u64,
    /// Deadline of a call, including the wait for the connection and opening one.
    pub(crate) call_ms: u64,
}

/// Counts of calls since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientStats {
    pub(crate) connects: u64,
    pub(crate) errors: u64,
    /// The server calls itself Valkey, or its address does as long as it has not said.
    is_valkey: bool,
}

/// The connection, and the waits between tries to open one.
struct Slot {
    connection: Option<Connection>,
    back_off: BackOff,
}

/// Calls from any thread that may block, one at a time.
pub(crate) struct Client {
    server: Arc<Server>,
    deadlines: Deadlines,
    slot: Mutex<Slot>,
    stats: Mutex<ClientStats>,
}

impl Client {
    pub(crate) fn new(server: &Arc<Server>, deadlines: Deadlines) -> Self {
        let is_valkey = server.address.says_valkey;
        Self {
            server: Arc::clone(server),
            deadlines,
            slot: Mutex::new(Slot {
                connection: None,
                back_off: BackOff::new(),
            }),
            stats: Mutex::new(ClientStats {
                is_valkey,
                ..ClientStats::default()
            }),
        }
    }

    /// Runs `work` on the connection. A failed call is not repeated, because only the caller knows
    /// whether it may be. The next call opens a new connection.
    pub(crate) fn call<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> Result<T, ValkeyError> {
        let done = self.try_call(work);
        if done.is_err() {
            self.stats.lock().errors += 1;
        }
        done
    }

    fn try_call<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> Result<T, ValkeyError> {
        let until_mono_ms = self.now_mono_ms() + self.deadlines.call_ms;
        let wait = Duration::from_millis(self.deadlines.call_ms);
        let mut slot = self.slot.try_lock_for(wait).ok_or(ValkeyError::Busy)?;
        let mut connection = match slot.connection.take() {
            Some(connection) => connection,
            None => self.open(&mut slot.back_off, until_mono_ms)?,
        };
        connection.end_by(until_mono_ms);
        match work(&mut connection) {
            Ok(done) => {
                slot.connection = Some(connection);
                Ok(done)
            }
            Err(error) => {
                let error = ValkeyError::of(&error);
                if error.keeps_connection() {
                    self.server.note_answer(&error, &mut connection);
                }
                if error.keeps_connection() && connection.usable {
                    slot.connection = Some(connection);
                }
                Err(error)
            }
        }
    }

    fn open(&self, back_off: &mut BackOff, until_mono_ms: u64) -> Result<Connection, ValkeyError> {
        let now_mono_ms = self.now_mono_ms();
        match back_off.wait_ms(now_mono_ms) {
            0 => {}
            retry_ms => return Err(ValkeyError::Away { retry_ms }),
        }
        let opened = self
            .server
            .connect(until_mono_ms.min(now_mono_ms + self.deadlines.connect_ms));
        match &opened {
            Ok(connection) => {
                back_off.succeeded();
                let mut stats = self.stats.lock();
                stats.connects += 1;
                stats.is_valkey = connection.is_valkey;
            }
            Err(_) => back_off.failed(self.now_mono_ms(), 0),
        }
        opened
    }

    /// Notes what a script found that no node has written: places in its keys, which are of these
    /// rows.
    pub(crate) fn note_foreign(&self, rows: &[&KeptKey], places: &[usize]) {
        for place in places {
            let row = rows.get(place.saturating_sub(1)).or(rows.last());
            if let Some(row) = row {
                self.server.refusals.note_foreign(row.name);
            }
        }
    }

    /// The server's own name, or that of the address until the server has given its own.
    pub(crate) fn server_name(&self) -> CacheBackend {
        if self.stats.lock().is_valkey {
            CacheBackend::Valkey
        } else {
            CacheBackend::Redis
        }
    }

    pub(crate) fn stats(&self) -> ClientStats {
        *self.stats.lock()
    }

    fn now_mono_ms(&self) -> u64 {
        self.server.timer.monotonic_ms()
    }
}
