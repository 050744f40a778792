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
mod metrics;
mod monitoring;
mod portfolio;
mod portfolio_turns;
mod prices;
mod prices_waiting;
mod probes;
mod process;
mod restart;
mod scrape;
mod snapshot;
mod stopping;
mod store;
mod support;
mod surface;
mod token;
