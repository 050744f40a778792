//! The brokers' portfolio clients against the simulator, over real HTTP.

mod bench;
mod broker_a;
mod broker_b;
mod memory;
