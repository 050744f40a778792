//! The simulator's own HTTP/1.1 server: its threads (`connections`), and its messages.

mod connections;
pub(crate) mod message;

pub(super) use connections::Server;
