//! Encrypted connections. Name and chain of the server's certificate are always verified.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::url::BadStoreUrl;

/// Trusts the certificates in a file (PEM), or the public authorities if none is named.
///
/// # Errors
/// [`BadStoreUrl`] if the file cannot be read or holds no certificate.
pub(crate) fn trusting(ca_file: Option<&Path>) -> Result<MakeRustlsConnect, BadStoreUrl> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => add_file(&mut roots, path)?,
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.map_err(|error| bad(error.to_string()))?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), BadStoreUrl> {
    let refused = |why: String| bad(format!("BHAV_STORE_CA_FILE: {}: {why}", path.display()));
    let found = CertificateDer::pem_file_iter(path).map_err(|error| refused(error.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| refused(error.to_string()))?;
        roots.add(certificate).map_err(|error| refused(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(refused("it holds no certificate".to_owned())),
        false => Ok(()),
    }
}

fn bad(problem: String) -> BadStoreUrl {
    BadStoreUrl::new(problem, "name a file with certificates in PEM form")
}
