//! The dashboard's pages and files, and the way back from a broker's login. These are not routes of
//! the API: nothing here identifies a caller or answers with JSON, except refusals.

use super::broker_return;
use super::portfolio::compute;
use super::state::State;
use crate::base::Broker;
use crate::http::document::negotiate::{Coding, preferred_coding};
use crate::http::{Method, Problem, Request, Response};
use crate::web::File;

/// What is at a path of the dashboard.
#[derive(Clone, Copy)]
pub(super) enum Place {
    File(&'static File),
    /// Where a broker's login sends the browser.
    Return(Broker),
}

impl Place {
    /// The place of a path; `None` if there is none, or the dashboard is switched off.
    pub(super) fn at(state: &State, path: &[u8]) -> Option<Self> {
        let site = state.site?;
        match path {
            b"/return/a" => Some(Self::Return(Broker::A)),
            b"/return/b" => Some(Self::Return(Broker::B)),
            _ => site.find(path).map(Self::File),
        }
    }

    /// The methods that it takes, as in the header `Allow`.
    pub(super) fn allowed_methods(self) -> &'static str {
        match self {
            Self::File(_) | Self::Return(Broker::A) => "GET, HEAD, OPTIONS",
            Self::Return(Broker::B) => "GET, HEAD, OPTIONS, POST",
        }
    }

    fn takes(self, method: Method) -> bool {
        matches!(method, Method::Get | Method::Head)
            || (method == Method::Post && matches!(self, Self::Return(Broker::B)))
    }

    /// Answers any request but OPTIONS.
    pub(super) fn serve(
        self,
        state: &State,
        request: &Request<'_>,
        reply: &mut Response<'_>,
    ) -> Result<(), Problem> {
        if !self.takes(request.method()) {
            let detail = "This path does not take this method; see the Allow header.";
            let problem = Problem::new(405, "method_not_allowed", detail);
            return Err(problem.with("Allow", self.allowed_methods()));
        }
        match self {
            Self::File(file) => send(state, file, request, reply),
            Self::Return(broker) => broker_return::send(broker, request, reply),
        }
    }
}

/// Parks once in the life of a process for each file, while it is compressed. Where nobody has time
/// for that, it is sent as it is.
fn send(
    state: &State,
    file: &'static File,
    request: &Request<'_>,
    reply: &mut Response<'_>,
) -> Result<(), Problem> {
    let variants = match preferred_coding(request.accept_encoding()) {
        Coding::Identity => file.plain(),
        _ => file.compressed().unwrap_or_else(|| {
            compute(state, || Ok(file.compress())).unwrap_or_else(|_busy| file.plain())
        }),
    };
    reply.send_document(variants.select(request.accept_encoding(), request.preconditions())?);
    Ok(())
}
