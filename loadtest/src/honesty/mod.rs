//! Whether prices say their age: a simulated session in which each feed breaks in each way in turn,
//! sampled five times a second and compared with what the exchange had.

mod check;
mod schedule;
mod session;

pub use session::measure;
