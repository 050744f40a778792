//! The public provider's answers on arbitrary bytes: reading them does not panic,
//! and what is read can be.
//!
//! `cargo fuzz run public fuzz/corpus/public fuzz/seeds/public`.

#![no_main]

use bhav::brokers::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzzing::public(data));
