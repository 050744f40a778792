//! Where the database is and how it is reached: `BHAV_STORE_URL` and what belongs to it.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use secrecy::ExposeSecret;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls;
use crate::store::settings::StoreSettings;
use crate::store::url::{BadStoreUrl, StoreUrl};

/// When an idle connection is first asked whether the other side still lives, and how long sent
/// data may stay unacknowledged.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(10);

/// A database, as hosts to try in order.
pub(crate) struct Target {
    /// As in the settings, for messages. Holds no password.
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
        let tls = encrypted.then(|| tls::trusting(settings.ca_file.as_deref())).transpose()?;
        Ok(Self { url: url.as_str().to_owned(), hosts: hosts(&config), tls })
    }
}

/// Whether the client understands the URL.
///
/// # Errors
/// [`BadStoreUrl`].
pub(crate) fn check(url: &str) -> Result<(), BadStoreUrl> {
    parse(url).map(drop)
}

/// Whether what is sent to another machine can be read on the way.
pub(crate) fn is_exposed(url: &str) -> bool {
    parse(url).is_ok_and(|config| {
        config.get_ssl_mode() == SslMode::Disable && !config.get_hosts().iter().all(is_own)
    })
}

fn parse(url: &str) -> Result<Config, BadStoreUrl> {
    const CURE: &str = "give a URL such as postgres://bhav@db.example.com/bhav?sslmode=verify-full";
    // The client knows `require` only, and certificates are always verified fully here.
    let known = url.replace("sslmode=verify-full", "sslmode=require");
    // The error would repeat parts of the URL.
    let parsed = Config::from_str(&known);
    let mut config =
        parsed.map_err(|_| BadStoreUrl::new("is not understood by the client", CURE))?;
    if config.get_hosts().is_empty() {
        return Err(BadStoreUrl::new("names no host", CURE));
    }
    if config.get_ssl_mode() == SslMode::Prefer {
        // Nothing was said: in clear text only where nobody can listen.
        let own = config.get_hosts().iter().all(is_own);
        config.ssl_mode(if own { SslMode::Disable } else { SslMode::Require });
    }
    config.keepalives_idle(KEEPALIVE_IDLE).tcp_user_timeout(UNACKNOWLEDGED_MAX);
    if config.get_hosts().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    Ok(config)
}

/// Whether the host is this machine.
fn is_own(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
    }
}

/// The same configuration for each host alone, so that each can be given up by itself.
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
        one.keepalives_idle(KEEPALIVE_IDLE).tcp_user_timeout(UNACKNOWLEDGED_MAX);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clear_text_goes_to_this_machine_alone_unless_it_is_asked_for() {
        for (url, mode) in [
            ("postgres://bhav@127.0.0.1/bhav", SslMode::Disable),
            ("postgres://bhav@localhost/bhav", SslMode::Disable),
            ("postgres:///bhav?host=/run/postgresql", SslMode::Disable),
            ("postgres://bhav@10.0.0.5/bhav", SslMode::Require),
            ("postgres://bhav@127.0.0.1,db.example.com/bhav", SslMode::Require),
            ("postgres://bhav@127.0.0.1/bhav?sslmode=require", SslMode::Require),
            ("postgres://bhav@db.example.com/bhav?sslmode=verify-full", SslMode::Require),
            ("postgres://bhav@10.0.0.5/bhav?sslmode=disable", SslMode::Disable),
        ] {
            assert_eq!(parse(url).unwrap().get_ssl_mode(), mode, "{url}");
        }
    }

    #[test]
    fn each_host_has_its_port_and_must_take_writes_if_there_are_several() {
        let found = hosts(&parse("postgres://bhav@one:5433,two:5434/bhav").unwrap());
        let ports: Vec<_> = found.iter().map(|config| config.get_ports().to_vec()).collect();
        assert_eq!(ports, [[5433], [5434]]);
        assert!(
            found.iter().all(|c| c.get_target_session_attrs() == TargetSessionAttrs::ReadWrite)
        );
        let found = hosts(&parse("postgres://bhav@one/bhav").unwrap());
        assert_eq!(found[0].get_target_session_attrs(), TargetSessionAttrs::Any);
        assert_eq!(found[0].get_ports(), [5432]);
    }
}
