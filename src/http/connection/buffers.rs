//! Working buffers that a connection borrows only while it handles bytes.
//!
//! One or two per worker serve any number of connections, so an idle connection costs its
//! coroutine's stack and nothing else. A set is taken out of the worker's pool by value: it may
//! travel with the coroutine to another thread, and is given back wherever that ends up.
//!
//! Bodies carry credentials, so a set that may have held one is wiped before it is given back or
//! dropped, as far as it was used: once a turn, and not at all for requests without a body. So is
//! the stack below, where the parser of the head leaves the bytes behind it (it reads up to 32 at
//! once), and handlers what they compared.

use std::cell::RefCell;

use zeroize::Zeroize;

use crate::base::wipe;
use crate::http::document::owned::OwnedBody;
use crate::http::message::head::Head;

/// Input a connection reads at once. Large enough for any usual request in one read.
pub const READ_BYTES: usize = 16 * 1024;

/// Sets kept per worker; more are in use only while handlers wait for lanes.
const POOLED_PER_THREAD: usize = 4;

/// Output capacity a pooled set keeps; a larger one is freed after use.
const OUT_BYTES_KEPT: usize = 128 * 1024;

/// One set of buffers.
pub struct Buffers {
    /// Unconsumed input stands in `input[..input_bytes]`; its length is the head limit plus a read.
    pub input: Box<[u8]>,
    pub input_bytes: usize,
    /// How far `input` was written to since the set was taken.
    input_used: usize,
    /// A body, or what may be one, stands or stood in `input`.
    pub holds_body: bool,
    pub out: Vec<u8>,
    pub body: Vec<u8>,
    /// A body that goes out behind `out`; the connection takes it before the set is given back.
    pub owned: Option<OwnedBody>,
    pub head: Head,
}

thread_local! {
    // Boxes, so that taking and giving back moves a pointer.
    #[expect(clippy::vec_box, reason = "a set moves between pool and coroutine as one pointer")]
    static POOL: RefCell<Vec<Box<Buffers>>> = const { RefCell::new(Vec::new()) };
}

impl Buffers {
    /// A set from this thread's pool, or a new one. Never inlined: the address of a thread-local
    /// must not be kept in a register across a wait that may end on another thread.
    #[inline(never)]
    pub fn take(head_bytes_max: usize) -> Box<Self> {
        let pooled = POOL.with(|pool| pool.borrow_mut().pop());
        pooled.filter(|set| set.input.len() == head_bytes_max + READ_BYTES).unwrap_or_else(|| {
            Box::new(Self {
                input: vec![0; head_bytes_max + READ_BYTES].into_boxed_slice(),
                input_bytes: 0,
                input_used: 0,
                holds_body: false,
                out: Vec::with_capacity(16 * 1024),
                body: Vec::with_capacity(16 * 1024),
                owned: None,
                head: Head::default(),
            })
        })
    }

    /// Notes that `count` bytes have arrived behind the input that stands there.
    pub fn arrived(&mut self, count: usize) {
        self.input_bytes += count;
        self.input_used = self.input_used.max(self.input_bytes);
    }

    /// Gives the set back to the pool of the thread that runs now, wiped if it held a body.
    #[inline(never)]
    pub fn give_back(mut self: Box<Self>) {
        self.wipe_body();
        if self.out.capacity() > OUT_BYTES_KEPT || self.body.capacity() > OUT_BYTES_KEPT {
            return;
        }
        self.input_bytes = 0;
        self.out.clear();
        self.body.clear();
        self.owned = None;
        POOL.with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < POOLED_PER_THREAD {
                pool.push(self);
            }
        });
    }
    /// Overwrites what a body, or an answer to it such as an access token, may have left. Beyond
    /// the mark there is nothing, or something of requests without a body.
    fn wipe_body(&mut self) {
        if self.holds_body {
            self.input[..self.input_used].zeroize();
            self.out.as_mut_slice().zeroize();
            self.body.as_mut_slice().zeroize();
            wipe::scrub();
            self.holds_body = false;
        }
        self.input_used = 0;
        #[cfg(test)]
        tests::look_into(self);
    }
}

/// Where a set does not come back: its coroutine unwinds, or its pool is full or ends.
impl Drop for Buffers {
    fn drop(&mut self) {
        self.wipe_body();
    }
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
