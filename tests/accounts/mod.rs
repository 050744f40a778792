//! Accounts, tokens, secrets, and what one user may learn of another.

mod activation;
mod addresses;
mod broker_token;
mod cookies;
mod erasure;
mod export;
mod isolation;
pub mod keys;
mod limits;
mod register;
mod secrets;
mod secrets_passwords;
mod secrets_paths;
mod token_life;
mod tokens;
mod watchlists;
