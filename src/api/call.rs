//! One call of a handler: its request and its caller, and the kinds of callers of a route.

use std::sync::Arc;

use crate::api::state::State;
use crate::auth::{ApiKey, Caller};
use crate::base::Scope;
use crate::http::settings::HttpSettings;
use crate::http::{BodyLimits, Method, Problem, Request, Response, Upload};

/// A request with the router's findings about it.
pub struct Call<'a> {
    pub request: &'a Request<'a>,
    /// The caller; present for every route with [`Access::User`], and with an API key.
    pub(super) caller: Option<Caller>,
    /// The number in the path, if the route has one.
    pub path_id: Option<i64>,
}

impl Call<'_> {
    /// The query string; empty if there is none.
    pub(super) fn query(&self) -> &[u8] {
        self.request.query().unwrap_or_default()
    }

    /// The caller.
    pub(crate) fn caller(&self) -> &Caller {
        self.caller
            .as_ref()
            .expect("the route's access is User, so the dispatch identified one")
    }

    /// The last segment of the path, of a route whose path ends in a name.
    pub(super) fn path_name(&self) -> String {
        let normal = self.request.normal_path();
        let path = normal.as_deref().unwrap_or(self.request.path());
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    /// The API key that came with the request.
    pub(super) fn key(&self) -> Option<&Arc<ApiKey>> {
        self.caller.as_ref()?.key.as_ref()
    }
}

/// The result of a handler. It has sent a success itself; the router sends a refusal.
pub(super) type Handled = Result<(), Problem>;

/// A handler of a route.
pub(crate) type Handler = fn(&State, &Call<'_>, &mut Response<'_>) -> Handled;

/// How a route takes a body that is a file.
pub struct Taking {
    /// Refuses by the head what can be refused by it, before the file comes. Must not park.
    pub(super) admit: fn(&State, &Call<'_>) -> Result<(), Problem>,
    /// Handles a request whose file has arrived.
    pub(super) take: fn(&State, &Call<'_>, Upload, &mut Response<'_>) -> Handled,
}

/// The callers that may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Public,
    /// A user with a valid token.
    User,
    /// The operator, by a secret in the body or by calling from this machine.
    Admin,
    /// The owner of an API key, and nobody with a login.
    Key,
}

/// The API keys with which a route may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Those with the scope.
    With(Scope),
    /// Any good one.
    Any,
    /// None: the route takes a login, or the administrator.
    Never,
}

impl Keys {
    /// Whether a good key may use the route, and the scope that it lacks otherwise.
    pub(super) fn admits(self, key: &ApiKey) -> Result<(), Option<Scope>> {
        match self {
            Self::Any => Ok(()),
            Self::With(scope) if key.scopes.has(scope) => Ok(()),
            Self::With(scope) => Err(Some(scope)),
            Self::Never => Err(None),
        }
    }
}

/// One route.
pub struct Route {
    pub method: Method,
    /// `{id}` as a whole segment stands for a positive number, for the id of an API key, or at the
    /// end of some paths for a name.
    pub path: &'static str,
    /// Whose data it reaches: everybody's, the caller's own, or the server's.
    pub access: Access,
    /// The API keys that it takes.
    pub keys: Keys,
    /// Limits of a request's body, by the settings in force.
    pub body: fn(&HttpSettings) -> BodyLimits,
    pub run: Handler,
    /// Of a route whose body is a file. `run` answers a request without a body there.
    pub upload: Option<Taking>,
    /// Its purpose, in one line.
    pub doc: &'static str,
}
