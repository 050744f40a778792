//! The dashboard: the files of the folder `web`, embedded in the program and served without its
//! comments, line for line.
//!
//! There is no build step: an auditor reads the code that runs. Pages know no user: all of them are
//! one document, whose modules are clients of the API like any other.

mod assets;
pub mod site;

pub use site::File;
pub(crate) use site::{Guest, Site, page_without_slash};
