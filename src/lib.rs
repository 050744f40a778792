//! bhav: market data, portfolios and signals of the Indian market, served from memory.

pub mod api;
pub mod app;
pub mod base;
pub mod brokers;
pub mod cache;
pub mod cli;
pub mod config;
pub mod http;
pub mod market;
pub mod ops;
pub mod rt;
pub mod sim;
pub mod warm;
