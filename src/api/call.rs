//! One call of a handler: its request, its caller, and who may call which route.

use crate::api::state::State;
use crate::auth::Caller;
use crate::http::{Problem, Request, Response};

/// A request with what the dispatch found out about it.
pub struct Call<'a> {
    pub request: Request<'a>,
    /// Who is calling; there for every route of [`Access::User`].
    pub(super) caller: Option<Caller>,
    /// The number in the path, where the route has one.
    pub path_id: Option<i64>,
}

impl Call<'_> {
    /// Who is calling.
    pub fn caller(&self) -> &Caller {
        self.caller.as_ref().expect("the route's access is User, so the dispatch identified one")
    }
}

/// Sends a success itself; a refusal is returned.
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
    /// For what is not cached, for a bounded time.
    OnMiss,
    /// For a lane, each time, up to the lane's deadline.
    Always,
}
