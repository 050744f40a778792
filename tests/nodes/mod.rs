//! Several nodes over one shared server: one asks the brokers, all serve the same.

mod accounts;
mod leading;
mod pair;
mod portfolios;
mod serving;
mod world;
