//! Seeded days: the real service and the simulated exchange in one thread, on a clock that stands
//! while anything is left to do. A trading day is drawn from a seed: when the service runs, is
//! stopped, is killed; what fails at the brokers and on the disk; what users do. The promises of
//! the documents are checked after every step, and a day that breaks one names its seed.

mod books;
mod dates;
pub mod day;
mod happenings;
mod peer;
mod promises;
#[cfg(test)]
mod seeds;
mod users;
mod world;
