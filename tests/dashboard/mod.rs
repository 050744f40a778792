//! The dashboard as a browser uses it: its pages and files, the login by cookie, and the return
//! from a broker's login.

mod broker_return;
mod cookie;
mod pages;
mod refusals;
