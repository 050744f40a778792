//! Several nodes over one shared server: one asks the brokers, all serve the same.

mod accounts;
mod leading;
mod serving;
mod world;
