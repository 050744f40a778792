//! A response body that is passed to the connection as it is, instead of being copied into the
//! output buffer.
//!
//! Pure. Made by handlers, on the edge or on a lane; written and freed by the connection.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use zeroize::Zeroize;

/// A longer body is large: it is not copied, and it is written in pieces, between which the worker
/// serves its other connections. A shorter body is copied behind its head, so that both go out in
/// one write, which is cheaper.
pub(crate) const LARGE_BYTES: usize = 256 * 1024;

/// The bytes of a body, owned or shared with other connections that send the same.
#[derive(Debug)]
pub struct OwnedBody {
    memory: Memory,
    is_secret: bool,
    /// Dropped with the body.
    _held: Option<Box<dyn Any + Send + Sync>>,
}

#[derive(Debug)]
enum Memory {
    Own(Vec<u8>),
    Shared(Arc<[u8]>, Range<usize>),
}

impl OwnedBody {
    /// A body together with a value that is dropped when the body is freed, written or not: a
    /// permit that limits how many such bodies are in memory.
    pub(crate) fn holding(bytes: Vec<u8>, held: impl Any + Send + Sync) -> Self {
        let memory = Memory::Own(bytes);
        Self {
            memory,
            is_secret: false,
            _held: Some(Box::new(held)),
        }
    }

    /// A part of shared bytes.
    pub(crate) fn part(bytes: Arc<[u8]>, part: Range<usize>) -> Self {
        Self {
            memory: Memory::Shared(bytes, part),
            is_secret: false,
            _held: None,
        }
    }

    /// All bytes of the body.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Own(bytes) => bytes,
            Memory::Shared(bytes, part) => &bytes[part.clone()],
        }
    }

    /// Marks the body as secret, because it may repeat a request's body. Its memory is then wiped
    /// before it is freed, unless it is shared.
    pub(crate) fn keep_secret(&mut self) {
        self.is_secret = true;
    }
}

impl From<Vec<u8>> for OwnedBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            memory: Memory::Own(bytes),
            is_secret: false,
            _held: None,
        }
    }
}

impl From<Arc<[u8]>> for OwnedBody {
    fn from(bytes: Arc<[u8]>) -> Self {
        let all = 0..bytes.len();
        Self::part(bytes, all)
    }
}

impl Drop for OwnedBody {
    fn drop(&mut self) {
        if let (true, Memory::Own(bytes)) = (self.is_secret, &mut self.memory) {
            bytes.as_mut_slice().zeroize();
        }
    }
}
