//! A bad morning: each fault of the simulator under the running service, as its clients see it.
//!
//! The settings make time short, nothing else: every wait is a condition with a deadline, and the
//! rule that an old price is never unlabelled is checked at every look.

mod both;
mod broker_a;
pub mod stage;
