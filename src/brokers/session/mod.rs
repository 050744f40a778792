//! The server's own login of the day at a broker, and the file that its token may come from.

pub mod token;
