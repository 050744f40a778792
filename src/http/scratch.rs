//! Working buffers that a connection borrows only while it handles bytes.
//!
//! One or two per worker serve any number of connections, so an idle connection costs its
//! coroutine's stack and nothing else. A set is taken out of the worker's pool by value: it may
//! travel with the coroutine to another thread, and is given back wherever that ends up.

use std::cell::RefCell;

use super::head::Head;

/// Input a connection reads at once. Large enough for any usual request in one read.
pub const READ_BYTES: usize = 16 * 1024;

/// Sets kept per worker; more are in use only while handlers wait for lanes.
const POOLED_PER_THREAD: usize = 4;

/// Output capacity a pooled set keeps; a larger one is freed after use.
const OUT_BYTES_KEPT: usize = 128 * 1024;

/// One set of buffers.
pub struct Scratch {
    /// Unconsumed input stands in `input[..input_bytes]`; its length is the head limit plus a read.
    pub input: Box<[u8]>,
    pub input_bytes: usize,
    pub out: Vec<u8>,
    pub body: Vec<u8>,
    pub head: Head,
}

thread_local! {
    // Boxes, so that taking and giving back moves a pointer.
    #[expect(clippy::vec_box, reason = "a set moves between pool and coroutine as one pointer")]
    static POOL: RefCell<Vec<Box<Scratch>>> = const { RefCell::new(Vec::new()) };
}

impl Scratch {
    /// A set from this thread's pool, or a new one. Never inlined: the address of a thread-local
    /// must not be kept in a register across a wait that may end on another thread.
    #[inline(never)]
    pub fn take(head_bytes_max: usize) -> Box<Self> {
        let pooled = POOL.with(|pool| pool.borrow_mut().pop());
        pooled.filter(|set| set.input.len() == head_bytes_max + READ_BYTES).unwrap_or_else(|| {
            Box::new(Self {
                input: vec![0; head_bytes_max + READ_BYTES].into_boxed_slice(),
                input_bytes: 0,
                out: Vec::with_capacity(16 * 1024),
                body: Vec::with_capacity(16 * 1024),
                head: Head::default(),
            })
        })
    }

    /// Gives the set back to the pool of the thread that runs now.
    #[inline(never)]
    pub fn give_back(mut self: Box<Self>) {
        if self.out.capacity() > OUT_BYTES_KEPT || self.body.capacity() > OUT_BYTES_KEPT {
            return;
        }
        self.input_bytes = 0;
        self.out.clear();
        self.body.clear();
        POOL.with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < POOLED_PER_THREAD {
                pool.push(self);
            }
        });
    }
}
