//! One connection for calls, opened anew when it broke. Every call ends by its deadline, and while
//! the server is away most end at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use redis::RedisResult;

use super::back_off::BackOff;
use super::connection::Connection;
use super::dial::Server;
use super::error::ValkeyError;

/// How long calls may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::cache) struct Deadlines {
    /// To open a connection and log in, out of the call's time.
    pub(in crate::cache) connect_ms: u64,
    /// A call, with the wait for the connection and the opening of one.
    pub(in crate::cache) call_ms: u64,
}

/// What became of calls since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cache) struct ClientStats {
    pub(in crate::cache) connects: u64,
    pub(in crate::cache) errors: u64,
}

/// The connection and its tries.
struct Slot {
    connection: Option<Connection>,
    back_off: BackOff,
}

/// Calls from any thread that may block, one at a time.
pub(in crate::cache) struct Client {
    server: Arc<Server>,
    deadlines: Deadlines,
    slot: Mutex<Slot>,
    connects: AtomicU64,
    errors: AtomicU64,
    /// Index in [`NAMES`].
    name: AtomicU8,
}

const NAMES: [&str; 2] = ["redis", "valkey"];

impl Client {
    pub(in crate::cache) fn new(server: &Arc<Server>, deadlines: Deadlines) -> Self {
        Self {
            server: Arc::clone(server),
            deadlines,
            slot: Mutex::new(Slot { connection: None, back_off: BackOff::new() }),
            connects: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            name: AtomicU8::new(u8::from(server.says_valkey())),
        }
    }

    /// Runs `work` on the connection. A failure is not tried again: the caller knows whether it may
    /// be, and the next call opens a new connection.
    pub(in crate::cache) fn call<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> Result<T, ValkeyError> {
        let done = self.try_call(work);
        if done.is_err() {
            self.errors.fetch_add(1, Relaxed);
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
                if error.keeps_connection() && connection.is_usable() {
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
        let opened =
            self.server.connect(until_mono_ms.min(now_mono_ms + self.deadlines.connect_ms));
        match &opened {
            Ok(connection) => {
                back_off.succeeded();
                self.connects.fetch_add(1, Relaxed);
                self.name.store(u8::from(connection.is_valkey()), Relaxed);
            }
            Err(_) => back_off.failed(self.now_mono_ms()),
        }
        opened
    }

    /// The server's name: what it says of itself, and until then what the address says.
    pub(in crate::cache) fn server_name(&self) -> &'static str {
        NAMES[usize::from(self.name.load(Relaxed)).min(1)]
    }

    pub(in crate::cache) fn stats(&self) -> ClientStats {
        ClientStats { connects: self.connects.load(Relaxed), errors: self.errors.load(Relaxed) }
    }

    fn now_mono_ms(&self) -> u64 {
        self.server.timer().monotonic_ms()
    }
}
