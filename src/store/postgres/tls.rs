//! Encrypted connections. Name and chain of the server's certificate are always verified.

use std::path::Path;

use tokio_postgres_rustls::MakeRustlsConnect;

use crate::rt::outbound::{roots_of, web_roots};
use crate::store::url::BadStoreUrl;

/// Trusts the certificates in a file (PEM), or the public authorities if none is named.
///
/// # Errors
/// [`BadStoreUrl`] if the file cannot be read or holds no certificate.
pub(crate) fn trusting(ca_file: Option<&Path>) -> Result<MakeRustlsConnect, BadStoreUrl> {
    let roots = match ca_file {
        None => web_roots(),
        Some(path) => roots_of(path).map_err(|why| {
            let problem = format!("BHAV_STORE_CA_FILE: {}: {why}", path.display());
            BadStoreUrl::new(problem, "name a file with certificates in PEM form")
        })?,
    };
    Ok(MakeRustlsConnect::new(crate::rt::outbound::trusting(roots)))
}
