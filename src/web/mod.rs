//! The dashboard: the files of the folder `web`, embedded in the program and served as they lie
//! there.
//!
//! There is no build step: what an auditor reads in `web` is what runs. Pages know no user: all of
//! them are one document, whose modules are clients of the API like any other.

pub mod site;

pub use site::File;
pub(crate) use site::Site;
