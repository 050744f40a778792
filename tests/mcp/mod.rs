//! `POST /mcp` from an assistant's view: the envelope in every version of the protocol, the tools,
//! and the questions that they answer.

mod arguments;
mod assistant;
mod envelope;
mod mixed;
mod pages;
mod questions;
mod tools;
mod world;
