//! An open-loop HTTP/1.1 load generator, small enough to share two cores with the server.
//!
//! A closed-loop tool waits for an answer before it asks again, so a server that stalls is asked
//! less and its stall is counted once. Here requests are due on a fixed schedule and latency runs
//! from the due time: whatever a stall delays is counted for every request it delayed.
//!
//! ```text
//! main ── cli ──┬─ engine   epoll loop over N keep-alive connections, counted in a tally
//!               │   ├─ schedule   which request is due when, on which connection
//!               │   ├─ scan       status and end of a response, over any fragmentation
//!               │   └─ epoll      the system calls
//!               ├─ idle    opens N connections, holds them, says how many were answered
//!               └─ readers N readers of a stream: frames, gaps, delays, returns
//!                   ├─ events     events of a stream, over any fragmentation
//!                   ├─ published  when each snapshot was published, as a client can know it
//!                   └─ judge      what was received against what was published
//! ```

pub mod cli;
pub mod engine;
pub mod epoll;
pub mod events;
pub mod idle;
pub mod judge;
pub mod published;
pub mod readers;
pub mod report;
pub mod request;
pub mod scan;
pub mod schedule;
pub mod sys;
pub mod tally;
