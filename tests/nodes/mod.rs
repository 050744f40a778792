//! Several nodes over one shared server: one asks the brokers, all serve the same.

mod accounts;
mod example;
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
mod tokens;
mod turns;
mod world;
