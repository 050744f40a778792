//! The operations of the store, over any engine: each is one transaction of statements.

mod data;
