//! `GET /api/openapi.json`: the description of the whole surface, as `openapi.json` beside this
//! file has it. A test makes that file of the routes and the views (`openapi/description.rs`).
//!
//! Made once at the start, in every coding; the edge picks one and copies it out. Tests hold it
//! against the routes and against real answers.

#[cfg(test)]
mod description;
#[cfg(test)]
mod layout;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod schemas;

use super::call::Call;
use super::state::State;
use crate::http::{CachePolicy, Problem, Response, Variants};

/// Held by a test to be of this version of the package.
const JSON: &[u8] = include_bytes!("openapi.json");

/// A new version may say something else, so each use asks whether it still stands.
const POLICY: CachePolicy = CachePolicy {
    cache_control: "public, no-cache",
    vary: "Accept-Encoding",
    compressed_from_bytes: 0,
};

/// The document as complete responses.
pub struct Document(Variants);

impl Document {
    /// Compresses, which takes some milliseconds: work of the start, not of the edge.
    pub fn new() -> Self {
        // Kept for the life of the process, so without a date.
        Self(Variants::new(JSON, &POLICY))
    }
}

impl Default for Document {
    fn default() -> Self {
        Self::new()
    }
}

/// Never waits.
pub fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let request = &call.request;
    let document = &state.document.0;
    reply.send_document(document.select(request.accept_encoding(), request.preconditions())?);
    Ok(())
}
