//! `POST /mcp`: what an assistant may read, by the Model Context Protocol.
//!
//! Every message is judged by itself: no session, no stream, no writes, no OAuth. Runs on the edge,
//! with an API key alone, and parks where the handlers of the tools' routes do.

mod arguments;
mod pages;
mod protocol;
mod route_pages;
mod schemas;
mod tool;
mod tools;

pub(super) use protocol::answer;
pub(super) use tools::Tools;
