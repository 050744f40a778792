//! The dashboard as a browser meets it: its pages and files, the login by cookie, and the way back
//! from a broker's login.

mod broker_return;
mod cookie;
mod pages;
