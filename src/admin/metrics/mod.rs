//! All metric families, gathered for each scrape.
//!
//! Runs on the lane `admin`. Labels are names of routes, lanes, caches, upstreams and states, all
//! fixed at build time. No label contains a user, symbol or address, so the number of series is
//! bounded.

mod edge;
mod gather;
mod upstream;
mod work;

pub(super) use gather::gather;
