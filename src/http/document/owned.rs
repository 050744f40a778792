//! A body that is handed over with its memory instead of being copied into the output.
//!
//! Pure. Made by handlers on the edge, or on a lane for them; written and freed by the connection.

use std::any::Any;
use std::sync::Arc;

use zeroize::Zeroize;

/// What is longer than this is large: it is not copied, and written in pieces between which the
/// other connections of the worker have their turn. Shorter bodies travel with their head in one
/// write, which is cheaper.
pub const LARGE_BYTES: usize = 256 * 1024;

/// Bytes of a body, its own or shared with others who send the same.
#[derive(Debug)]
pub struct OwnedBody {
    memory: Memory,
    is_secret: bool,
    /// Let go with the body.
    _held: Option<Box<dyn Any + Send + Sync>>,
}

#[derive(Debug)]
enum Memory {
    Own(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl OwnedBody {
    /// A body with what is to be dropped when it is freed, written or not: a place that is taken
    /// for as long as the body takes memory.
    pub fn holding(bytes: Vec<u8>, held: impl Any + Send + Sync) -> Self {
        let memory = Memory::Own(bytes);
        Self { memory, is_secret: false, _held: Some(Box::new(held)) }
    }

    /// The whole body.
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Own(bytes) => bytes,
            Memory::Shared(bytes) => bytes,
        }
    }

    /// Its memory is wiped before it is freed, unless others share it: it may repeat what stood in
    /// a request's body.
    pub(crate) fn keep_secret(&mut self) {
        self.is_secret = true;
    }
}

impl From<Vec<u8>> for OwnedBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self { memory: Memory::Own(bytes), is_secret: false, _held: None }
    }
}

impl From<Arc<[u8]>> for OwnedBody {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self { memory: Memory::Shared(bytes), is_secret: false, _held: None }
    }
}

impl Drop for OwnedBody {
    fn drop(&mut self) {
        if let (true, Memory::Own(bytes)) = (self.is_secret, &mut self.memory) {
            bytes.as_mut_slice().zeroize();
        }
    }
}
