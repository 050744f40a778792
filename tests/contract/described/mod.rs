//! Real answers of a real service, compared with the description that it serves: each field, each
//! header, each code and each limit.

mod ages;
mod answers;
mod checker;
mod ledger;
mod limits;
mod refusals;
mod walk;
