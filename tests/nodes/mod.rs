//! Tests of several nodes with one shared server: one calls the brokers, all serve the same.

mod accounts;
mod clients;
mod example;
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
mod strangers;
mod tokens;
mod turns;
mod ways;
mod world;
