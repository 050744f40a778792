//! Row 3: HTTP/1.1 on may.
pub mod date;
pub mod prepared;
pub use prepared::Prepared;
