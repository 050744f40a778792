//! Tests of several nodes with one shared server: one calls the brokers, all serve the same.

mod accounts;
mod clients;
mod example;
mod foreign_writes;
mod going_back;
mod keys;
mod leading;
mod limits;
mod pair;
mod portfolios;
mod processes;
mod programs;
mod refusals;
mod secrets;
mod serving;
mod standby;
mod status;
mod stopped_leader;
#[allow(
    dead_code,
    reason = "the names of what he does are of the tests of each"
)]
#[path = "../../src/nodes/valkey/test_server_stranger.rs"]
mod stranger;
mod strangers;
mod tokens;
mod turns;
mod ways;
mod world;
