//! The server's own session of the day at a broker, and the file that keeps its token.

pub mod token;
