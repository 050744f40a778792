//! What the tests share: a server to attack, a raw client that believes nothing, bounded waiting.

pub mod canaries;
pub mod harness;
pub mod probe;
pub mod process;
pub mod scrape;
pub mod service;
pub mod source;
pub mod upstream;
pub mod wait;
pub mod wire;

pub use harness::{Harness, small};
pub use probe::OWNED_BYTES;
pub use wait::eventually;
pub use wire::{Answer, Wire};
