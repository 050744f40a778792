//! Several nodes over one shared server: one asks the brokers, all serve the same.

mod leading;
mod limits;
mod serving;
mod status;
mod tokens;
mod world;
