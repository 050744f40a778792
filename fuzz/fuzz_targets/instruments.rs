//! Broker A's lists of instruments on arbitrary bytes: reading them does not panic,
//! and what is read can be.
//!
//! `cargo fuzz run instruments fuzz/corpus/instruments fuzz/seeds/instruments`.

#![no_main]

use bhav::brokers::broker_a::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzzing::instruments(data));
