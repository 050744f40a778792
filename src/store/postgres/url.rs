//! The URL of a database, as the client understands it. Pure.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::store::errors::BadStoreUrl;

/// Idle time before the first keepalive probe, and the time that sent data may stay unacknowledged.
pub(super) const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
pub(super) const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(10);

/// Whether data sent to another machine is unencrypted.
pub(in crate::store) fn is_exposed(url: &str) -> bool {
    parse(url).is_ok_and(|config| {
        config.get_ssl_mode() == SslMode::Disable && !config.get_hosts().iter().all(is_own)
    })
}

/// The client's configuration.
///
/// # Errors
/// [`BadStoreUrl`].
pub(in crate::store) fn parse(url: &str) -> Result<Config, BadStoreUrl> {
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
        // The URL does not say: clear text only to this machine.
        let own = config.get_hosts().iter().all(is_own);
        config.ssl_mode(if own {
            SslMode::Disable
        } else {
            SslMode::Require
        });
    }
    config
        .keepalives_idle(KEEPALIVE_IDLE)
        .tcp_user_timeout(UNACKNOWLEDGED_MAX);
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
            name == "localhost"
                || name
                    .parse()
                    .is_ok_and(|address: IpAddr| address.is_loopback())
        }
    }
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
}
