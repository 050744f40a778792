//! The store's files on a disk that misbehaves.

mod files;
mod store;
