//! Every metric family, gathered anew for each scrape.
//!
//! Runs on the admin lane. Labels are names of routes, lanes, caches, upstreams and states, all
//! fixed at build time: no user, symbol or address, so the number of series has a bound.

mod edge;
mod gather;
mod upstream;
mod work;

pub(super) use gather::gather;
