//! An engine as the suite uses it, and the macro that makes tests of it.

use crate::store::{Store, UserDirectory};

/// One empty database of an engine, for one test. Dropping the value deletes it.
pub(crate) trait Engine {
    /// Whether the engine is installed here. If not, its tests are left out.
    fn is_there() -> bool {
        true
    }

    fn fresh() -> Self;

    /// Opens the database. It may be opened again once the earlier store is dropped.
    fn open(&self) -> Store;

    /// The operator's view of its users, next to an open store.
    fn users(&self) -> UserDirectory;

    /// Runs a statement as with the engine's own tools, next to an open store.
    fn execute(&self, statement: &str) -> Result<(), String>;
}

/// Makes a test of each of these functions on each engine.
macro_rules! on_each_engine {
    ($($test:ident),+ $(,)?) => {
        $crate::store::conformance::engine::on_engine! {
            in_a_file: $crate::store::sqlite::conformance_tests::OneFile; $($test),+
        }
        #[cfg(feature = "engines")]
        $crate::store::conformance::engine::on_engine! {
            on_a_server: $crate::store::postgres::conformance_tests::Direct; $($test),+
        }
        #[cfg(feature = "engines")]
        $crate::store::conformance::engine::on_engine! {
            through_a_pooler: $crate::store::postgres::conformance_tests::Pooled; $($test),+
        }
    };
}

macro_rules! on_engine {
    ($part:ident: $engine:path; $($test:ident),+) => {
        mod $part {
            $(#[test]
            fn $test() {
                if <$engine as $crate::store::conformance::engine::Engine>::is_there() {
                    super::$test::<$engine>();
                }
            })+
        }
    };
}

pub(crate) use {on_each_engine, on_engine};
