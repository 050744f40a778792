//! Address of the database and how to connect: `BHAV_STORE_URL` and the settings that go with it.

use std::path::Path;

use secrecy::ExposeSecret;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::rt::outbound::{roots_of, web_roots};
use crate::store::errors::BadStoreUrl;
use crate::store::postgres::url::{KEEPALIVE_IDLE, UNACKNOWLEDGED_MAX, parse};
use crate::store::settings::{StoreSettings, StoreUrl};

/// A database, as hosts to try in order.
pub(crate) struct Target {
    /// The URL of the settings, for messages. Holds no password.
    pub(crate) url: String,
    /// One configuration for each host.
    pub(crate) hosts: Vec<Config>,
    /// `None` if the connection is not encrypted.
    pub(crate) tls: Option<MakeRustlsConnect>,
}

impl Target {
    /// # Errors
    /// [`BadStoreUrl`], also of the file with the trusted certificates.
    pub(crate) fn new(url: &StoreUrl, settings: &StoreSettings) -> Result<Self, BadStoreUrl> {
        let mut config = parse(url.as_str())?;
        if let Some(password) = &settings.password {
            config.password(password.expose_secret());
        }
        if config.get_application_name().is_none() {
            config.application_name(&settings.connection_name);
        }
        let encrypted = config.get_ssl_mode() == SslMode::Require;
        let tls = encrypted
            .then(|| trusting(settings.ca_file.as_deref()))
            .transpose()?;
        Ok(Self {
            url: url.as_str().to_owned(),
            hosts: hosts(&config),
            tls,
        })
    }
}

/// One configuration for each host, so that each can be given up by itself.
fn hosts(config: &Config) -> Vec<Config> {
    let ports = config.get_ports();
    let port_of = |at: usize| match ports {
        [] => 5432,
        [port] => *port,
        ports => ports.get(at).copied().unwrap_or(5432),
    };
    let alone = |(at, host): (usize, &Host)| {
        let mut one = Config::new();
        match host {
            Host::Tcp(name) => one.host(name),
            Host::Unix(path) => one.host_path(path),
        };
        one.port(port_of(at)).ssl_mode(config.get_ssl_mode());
        one.keepalives_idle(KEEPALIVE_IDLE)
            .tcp_user_timeout(UNACKNOWLEDGED_MAX);
        one.target_session_attrs(config.get_target_session_attrs());
        if let Some(user) = config.get_user() {
            one.user(user);
        }
        if let Some(password) = config.get_password() {
            one.password(password);
        }
        if let Some(name) = config.get_dbname() {
            one.dbname(name);
        }
        if let Some(options) = config.get_options() {
            one.options(options);
        }
        if let Some(name) = config.get_application_name() {
            one.application_name(name);
        }
        one
    };
    config.get_hosts().iter().enumerate().map(alone).collect()
}

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

#[cfg(test)]
mod tests {
    use tokio_postgres::config::TargetSessionAttrs;

    use super::*;

    #[test]
    fn each_host_has_its_port_and_must_take_writes_if_there_are_several() {
        let found = hosts(&parse("postgres://bhav@one:5433,two:5434/bhav").unwrap());
        let ports: Vec<_> = found
            .iter()
            .map(|config| config.get_ports().to_vec())
            .collect();
        assert_eq!(ports, [[5433], [5434]]);
        assert!(
            found
                .iter()
                .all(|c| c.get_target_session_attrs() == TargetSessionAttrs::ReadWrite)
        );
        let found = hosts(&parse("postgres://bhav@one/bhav").unwrap());
        assert_eq!(found[0].get_target_session_attrs(), TargetSessionAttrs::Any);
        assert_eq!(found[0].get_ports(), [5432]);
    }
}
