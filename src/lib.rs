#![doc = include_str!("../ARCHITECTURE.md")]

pub mod api;
pub mod app;
pub mod auth;
pub mod base;
pub mod brokers;
pub mod cache;
pub mod cli;
pub mod config;
pub mod http;
pub mod market;
pub mod ops;
pub mod rt;
pub mod signals;
pub mod sim;
pub mod store;
pub mod warm;
