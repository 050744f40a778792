//! `GET /api/openapi.json`: the OpenAPI description of every route, from the file `openapi.json`
//! next to this one. A test generates that file from the routes and the views (`openapi_tests.rs`).
//!
//! Prepared once at the start, in every content coding; the edge picks one and copies it out. Tests
//! compare it with the routes and with real answers.

use crate::api::state::{Call, Handled, State};
use crate::http::{CachePolicy, Response, Variants};

/// A test checks that its version is that of the package.
const JSON: &[u8] = include_bytes!("openapi.json");

/// Another version of the program may have another description, so clients revalidate each time.
const POLICY: CachePolicy = CachePolicy::JSON;

/// The document as complete responses.
pub struct Document(Variants);

impl Document {
    /// Compresses the document, which takes some milliseconds. Called at the start, not on the
    /// edge.
    pub(crate) fn new() -> Self {
        // Prepared once for the life of the process, so without a `Date` header.
        Self(Variants::new(JSON, &POLICY))
    }
}

impl Default for Document {
    fn default() -> Self {
        Self::new()
    }
}

/// Never waits.
pub(super) fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let request = call.request;
    let document = &state.document.0;
    reply.send_document(document.select(request.accept_encoding(), request.preconditions())?);
    Ok(())
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
