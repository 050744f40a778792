//! The dashboard as a browser uses it: its pages and files, the login by cookie, and the return
//! from a broker's login.

mod broker_return;
mod cookie;
mod login_in_front;
mod pages;
mod refusals;
