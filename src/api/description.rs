//! `GET /api/openapi.json`: the OpenAPI description of the routes, which `openapi_tests.rs` generates.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::api::call::{Call, Handled};
use crate::api::pages;
use crate::api::state::State;
use crate::http::{CachePolicy, Response};
use crate::web::File;

/// A test checks that its version is that of the package.
pub(super) const DESCRIPTION: &[u8] = include_bytes!("openapi.json");

/// The description as complete responses, made once for the life of the process. Called at the
/// start, not on the edge.
pub(crate) fn description() -> &'static File {
    static FILE: LazyLock<File> =
        LazyLock::new(|| File::new(Cow::Borrowed(DESCRIPTION), CachePolicy::JSON));
    &FILE
}

/// `GET /api/openapi.json`. Waits once in the life of a process, while the document is compressed.
pub(super) fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let request = call.request;
    pages::send(state, state.description, request.preconditions(), request, reply)
}
