//! Broker B's answers and its security master on arbitrary bytes: reading them does not panic,
//! and what is read can be.
//!
//! `cargo fuzz run broker_b fuzz/corpus/broker_b fuzz/seeds/broker_b`.

#![no_main]

use bhav::brokers::broker_b::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzzing::replies(data));
