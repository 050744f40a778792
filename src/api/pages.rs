//! The dashboard's pages and files, and the way back from a broker's login. These are not routes of
//! the API: nothing here identifies a caller or answers with JSON, except refusals and the API's
//! own description, which is a file of the program too.

use crate::api::broker_return::{form_limits, send_broker_return};
use crate::api::call::Handled;
use crate::api::lane::compute;
use crate::api::state::State;
use crate::base::Broker;
use crate::brokers::login_at;
use crate::http::document::negotiate::{Coding, preferred_coding};
use crate::http::settings::HttpSettings;
use crate::http::{BodyLimits, Method, Preconditions, Problem, Request, Response};
use crate::web::{File, page_without_slash};

/// The content at a path of the dashboard.
#[derive(Clone, Copy)]
pub(super) enum Place {
    File(&'static File),
    /// A page, but for a slash at the end of the path.
    Slashed,
    /// Nothing is there, and a person asked.
    Missing(&'static File),
    /// Target of a broker's login, which sends the browser here.
    Return(Broker),
}

impl Place {
    /// The content at a path; `None` if there is none or the dashboard is switched off.
    pub(super) fn at(state: &State, path: &[u8]) -> Option<Self> {
        let site = state.site?;
        let letter = path.strip_prefix(b"/return/");
        let is_its = |broker: &Broker| letter == Some(broker.as_str().as_bytes());
        match Broker::ALL.into_iter().find(is_its) {
            Some(broker) => Some(Self::Return(broker)),
            None if page_without_slash(path).is_some() => Some(Self::Slashed),
            None => site.find(path).map(Self::File),
        }
    }

    /// The page that says to a person that there is nothing at a path; `None` for programs.
    pub(super) fn missing(state: &State, path: &[u8], request: &Request<'_>) -> Option<Self> {
        let is_read = matches!(request.method(), Method::Get | Method::Head);
        let page = state
            .site
            .filter(|_| is_read && request.wants_page())?
            .missing(path)?;
        Some(Self::Missing(page))
    }

    /// The methods that it accepts, for the header `Allow`.
    pub(super) fn allowed_methods(self) -> &'static str {
        match self {
            Self::Return(broker) if login_at(broker).sends_a_form => "GET, HEAD, OPTIONS, POST",
            Self::File(_) | Self::Slashed | Self::Missing(_) | Self::Return(_) => {
                "GET, HEAD, OPTIONS"
            }
        }
    }

    /// Limits of a request's body here.
    pub(super) fn body_limits(self, settings: &HttpSettings) -> BodyLimits {
        match self {
            Self::Return(broker) if login_at(broker).sends_a_form => form_limits(settings),
            Self::File(_) | Self::Slashed | Self::Missing(_) | Self::Return(_) => {
                settings.body_limits()
            }
        }
    }

    fn takes(self, method: Method) -> bool {
        matches!(method, Method::Get | Method::Head)
            || (method == Method::Post
                && matches!(self, Self::Return(it) if login_at(it).sends_a_form))
    }

    /// Answers any request but OPTIONS.
    pub(super) fn serve(
        self,
        state: &State,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Handled {
        if !self.takes(request.method()) {
            let detail = "This path does not take this method; see the Allow header.";
            let problem = Problem::new(405, "method_not_allowed", detail);
            return Err(problem.with("Allow", self.allowed_methods()));
        }
        match self {
            Self::File(file) => send(state, file, request.preconditions(), request, response),
            Self::Slashed => redirect(request, response),
            Self::Missing(file) => send(state, file, Preconditions::NONE, request, response),
            Self::Return(broker) => send_broker_return(broker, request, response),
        }
    }
}

/// Leads to the page without the slash, with the same query.
fn redirect(request: &Request<'_>, response: &mut Response<'_>) -> Handled {
    let nothing = || Problem::new(404, "not_found", "There is nothing at this path.");
    let page = page_without_slash(request.path()).ok_or_else(nothing)?;
    let query = request
        .query()
        .map(|query| format!("?{}", String::from_utf8_lossy(query)));
    let location = format!("{page}{}", query.unwrap_or_default());
    response.body();
    response.send(308, "", &[("Location", &location), ("Cache-Control", "no-cache")]);
    Ok(())
}

/// Parks once for each file in the life of a process, while it is compressed. If the lane is busy
/// the file is sent uncompressed.
pub(super) fn send(
    state: &State,
    file: &'static File,
    preconditions: Preconditions<'_>,
    request: &Request<'_>,
    response: &mut Response<'_>,
) -> Handled {
    let variants = match preferred_coding(request.accept_encoding()) {
        Coding::Identity => file.plain(),
        _ => file.compressed().unwrap_or_else(|| {
            compute(&state.portfolio.lane, || Ok(file.compress()))
                .unwrap_or_else(|_busy| file.plain())
        }),
    };
    response.send_document(variants.select(request.accept_encoding(), preconditions)?);
    Ok(())
}
