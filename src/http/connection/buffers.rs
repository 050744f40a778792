//! Pooled working buffers, which a connection borrows only while it handles bytes.
//!
//! One or two sets per worker serve any number of connections, so an idle connection costs only its
//! coroutine's stack. A set is taken out of the worker thread's pool by value. It may move with the
//! coroutine to another thread, and is given back to the pool of the thread that it is on then.
//!
//! Bodies carry credentials. So a set that may have held a body is wiped, as far as it was used,
//! before it is given back or dropped; requests without a body cost nothing. The stack below is
//! overwritten too: the parser of the head copies up to 32 bytes that follow the head, and handlers
//! copy what they compare.

use std::cell::RefCell;

use zeroize::Zeroize;

use crate::base::wipe;
use crate::http::document::owned_body::OwnedBody;
use crate::http::message::head::KnownHeads;

/// Maximum number of bytes read at once. Any usual request fits.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// Most sets kept in a worker's pool. More are in use only while handlers wait for lanes.
const POOLED_PER_THREAD: usize = 4;

/// Sets with a larger output buffer are freed instead of pooled.
const OUT_BYTES_KEPT: usize = 128 * 1024;

/// One set of buffers.
pub(crate) struct Buffers {
    /// `input[..input_bytes]` is input not handled yet. The length of `input` is the limit of a
    /// head plus [`READ_BYTES`].
    pub input: Box<[u8]>,
    pub input_bytes: usize,
    /// Length of the part of `input` that was written to since the set was taken.
    input_used: usize,
    /// `input` contains or contained bytes that are or may be a body.
    pub holds_body: bool,
    /// Responses to be written.
    pub out: Vec<u8>,
    /// Body of the response being made.
    pub body: Vec<u8>,
    /// A response body to be written after `out`. The connection takes it before the set is given
    /// back.
    pub owned: Option<OwnedBody>,
    pub(crate) heads: KnownHeads,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "a set moves between pool and coroutine as one pointer")]
    static POOL: RefCell<Vec<Box<Buffers>>> = const { RefCell::new(Vec::new()) };
}

impl Buffers {
    /// A set from this thread's pool, or a new one. Never inlined, so that the compiler cannot keep
    /// the address of the thread-local across a wait that ends on another thread.
    #[inline(never)]
    pub(crate) fn take(head_bytes_max: usize) -> Box<Self> {
        let pooled = POOL.with(|pool| pool.borrow_mut().pop());
        pooled
            .filter(|set| set.input.len() == head_bytes_max + READ_BYTES)
            .unwrap_or_else(|| {
                Box::new(Self {
                    input: vec![0; head_bytes_max + READ_BYTES].into_boxed_slice(),
                    input_bytes: 0,
                    input_used: 0,
                    holds_body: false,
                    out: Vec::with_capacity(16 * 1024),
                    body: Vec::with_capacity(16 * 1024),
                    owned: None,
                    heads: KnownHeads::default(),
                })
            })
    }

    /// Records that `count` bytes were read behind the existing input.
    pub(crate) fn arrived(&mut self, count: usize) {
        self.input_bytes += count;
        self.input_used = self.input_used.max(self.input_bytes);
    }

    /// Gives the set back to the pool of the current thread, wiped if it held a body.
    #[inline(never)]
    pub(crate) fn give_back(mut self: Box<Self>) {
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

    /// Overwrites everything that a body, or a response to it such as an access token, may have
    /// left. Nothing of a body is behind `input_used`.
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
        tests::inspect(self);
    }
}

/// Wipes sets that are not pooled: the coroutine panics, or the pool is full or its thread ends.
impl Drop for Buffers {
    fn drop(&mut self) {
        self.wipe_body();
    }
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
