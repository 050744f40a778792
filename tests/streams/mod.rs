//! Event streams, read as browsers read them.

mod again;
mod ends;
mod framing;
mod limits;
mod parser;
mod process;
mod proxy;
mod quotes;
mod rates;
mod readers;
mod resume;
mod stage;
