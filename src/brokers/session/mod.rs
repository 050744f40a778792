//! The server's own logins at the brokers.

pub mod token;
pub mod token_file;
