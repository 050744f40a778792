//! Streams of events, read as browsers read them.

mod ends;
mod framing;
mod limits;
mod parser;
mod proxy;
mod rates;
mod readers;
mod resume;
mod stage;
