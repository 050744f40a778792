//! Broker A's answers on arbitrary bytes: reading them does not panic, and what is read can be.
//!
//! `cargo fuzz run broker_a fuzz/corpus/broker_a fuzz/seeds/broker_a`.

#![no_main]

use bhav::brokers::broker_a::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzzing::replies(data));
