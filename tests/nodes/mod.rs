//! Several nodes over one shared server: one asks the brokers, all serve the same.

mod accounts;
mod example;
mod leading;
mod pair;
mod portfolios;
mod processes;
mod serving;
mod world;
