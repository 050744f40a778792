//! A bad morning: each fault of the simulator under the running service, as its clients see it.
//!
//! The settings only shorten times. Every wait is a condition with a deadline, and each check also
//! asserts that no old price is unmarked.

mod both;
mod broker_a;
pub mod stage;
