//! The whole service over real sockets: an application against a simulator, one scenario a test.

mod accounts;
mod accounts_limits;
mod accounts_tokens;
mod activation;
mod close;
mod coalescing;
mod health;
mod journal;
mod market;
mod portfolio;
mod portfolio_turns;
mod prices;
mod prices_waiting;
mod process;
mod restart;
mod restart_under_load;
mod snapshot;
mod stopping;
mod store;
mod supervised;
mod support;
mod surface;
mod token;
