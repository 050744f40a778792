//! Several nodes over one shared server: one asks the brokers, all serve the same.

mod example;
mod leading;
mod limits;
mod processes;
mod programs;
mod secrets;
mod serving;
mod status;
mod tokens;
mod world;
