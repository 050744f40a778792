#![doc = include_str!("../ARCHITECTURE.md")]
#![cfg_attr(feature = "engines", warn(unreachable_pub))]
#![cfg_attr(
    not(feature = "engines"),
    allow(
        dead_code,
        unused_imports,
        reason = "several nodes use more than one; the build with engines finds dead code"
    )
)]

pub mod admin;
pub mod api;
pub mod app;
pub mod auth;
pub mod base;
pub mod brokers;
pub mod cache;
pub mod cli;
pub mod config;
pub mod http;
pub mod ledger;
pub mod market;
pub mod nodes;
pub mod ops;
pub mod portfolio;
pub mod rt;
pub mod signals;
pub mod sim;
pub mod status;
pub mod store;
pub mod views;
pub mod warmers;
pub mod web;
