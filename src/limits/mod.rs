//! Limits that a caller meets: attempts of an address, requests of a user.

pub mod throttle;
