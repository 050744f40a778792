//! HTTP/1.1 from hostile, slow, careless and ordinary clients.

mod admission;
mod body_limits;
mod chunked;
mod deadlines;
mod drain;
mod fragments;
mod framing;
mod handlers;
mod hosts;
mod large;
mod limits;
mod pipelining;
mod problems;
mod processes;
mod semantics;
mod unread;
mod uploads;
