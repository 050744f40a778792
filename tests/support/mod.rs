//! Shared parts of the tests: the service in this process, the program in another, one client, and
//! one way to wait.

pub mod canaries;
pub mod client;
pub mod events;
pub mod harness;
/// The same servers as in the tests of the store itself.
#[cfg(feature = "engines")]
#[allow(dead_code, reason = "poolers are of those tests alone")]
#[path = "../../src/store/postgres/test_server.rs"]
pub mod postgres;
pub mod probe;
pub mod process;
pub mod program;
/// The same quote as in the tests beside the code.
#[path = "../../src/base/testing.rs"]
pub mod samples;
pub mod scrape;
pub mod service;
#[cfg(feature = "engines")]
pub mod shared_server;
pub mod source;
pub mod upstream;
pub mod wait;

use bhav::base::{Quote, Source, Symbol};

pub use client::{Answer, Client, bearer, members};
pub use events::{EVENT_STREAM, Event, EventParser, EventReader, STREAM};
pub use harness::{Harness, small};
pub use probe::OWNED_BYTES;
pub use program::{
    BHAV, OnTerminal, Process, Program, Ran, Signal, bhav, by_shell, few_candles, on_socket,
    refused, run, run_with, serve, state_flag, without_admin,
};
pub use service::{PRICES, SNAPSHOT, Scene, Service, TRADING, UNIVERSE};
#[cfg(feature = "engines")]
pub(crate) use shared_server::SharedServer;
pub use wait::{say, until};
