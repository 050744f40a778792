//! One call of a handler: its request and its caller, and who may call which route.

use crate::api::state::State;
use crate::auth::Caller;
use crate::http::{Problem, Request, Response};

/// A request with what the router found out about it.
pub struct Call<'a> {
    pub request: Request<'a>,
    /// The caller; present for every route with [`Access::User`].
    pub(super) caller: Option<Caller>,
    /// The number in the path, if the route has one.
    pub path_id: Option<i64>,
}

impl Call<'_> {
    /// The caller.
    pub fn caller(&self) -> &Caller {
        self.caller.as_ref().expect("the route's access is User, so the dispatch identified one")
    }
}

/// A handler of a route. It sends a success itself and returns a refusal as a problem.
pub type Handler = fn(&State, &Call<'_>, &mut Response<'_>) -> Result<(), Problem>;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Public,
    /// A user with a valid token.
    User,
    /// The operator, by a secret in the body or by calling from this machine.
    Admin,
}

/// Whether a handler may park.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hop {
    Never,
    /// Parks only for data that is not cached, for a bounded time.
    OnMiss,
    /// Always parks, for a lane or the store, up to its deadline.
    Always,
}
