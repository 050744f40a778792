//! Several nodes over one shared server: one asks the brokers, all serve the same.

mod example;
mod leading;
mod processes;
mod programs;
mod secrets;
mod serving;
mod world;
