//! Row 3: HTTP/1.1 on may.
pub mod prepared;
pub use prepared::Prepared;
