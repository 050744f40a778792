//! What TLS connections trust.

#[cfg(feature = "engines")]
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "engines")]
use rustls::pki_types::{CertificateDer, pem::PemObject};
use rustls::{ClientConfig, RootCertStore};

/// The public authorities.
pub(crate) fn web_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

/// The authorities in a file (PEM).
///
/// # Errors
/// Why it cannot be used, in words.
#[cfg(feature = "engines")]
pub(crate) fn roots_of(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|why| why.to_string())? {
        let certificate = certificate.map_err(|why| why.to_string())?;
        roots.add(certificate).map_err(|why| why.to_string())?;
    }
    match roots.is_empty() {
        true => Err("it holds no certificate".to_owned()),
        false => Ok(roots),
    }
}

/// Verifies chain and name of every server by these roots.
pub(crate) fn trusting(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of TLS 1.2 and 1.3");
    config.with_root_certificates(roots).with_no_client_auth()
}
