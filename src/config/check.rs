//! Checks settings that are each valid by themselves: relations between them, the files that they
//! name, and dangers.
//!
//! Runs on the main thread, at start and at each reload.

use std::net::SocketAddr;

use super::composed::Config;
use super::secrets::SECRETS;
use crate::base::Network;
use crate::config::composed::Loaded;
use crate::config::environment::Environment;
use crate::config::fault::{Fault, Origin};
use crate::config::secrets::SHARED_PREFIX;
use crate::config::settings::{REMOVED, SETTINGS, is_known};
use crate::nodes::valkey::Place;
use crate::views::states::ExposedReason;

/// Finds pairs of settings that contradict each other, and files that cannot be opened. Each fault
/// comes with the names of the settings involved.
pub(super) fn relations(config: &Config) -> Vec<(Vec<&'static str>, Fault)> {
    let mut found = Vec::new();
    let upstream = &config.upstream;
    if upstream.connect_timeout_ms > upstream.total_timeout_ms {
        let name = "BHAV_UPSTREAM_CONNECT_TIMEOUT_MS";
        let whole = "BHAV_UPSTREAM_TOTAL_TIMEOUT_MS";
        let problem = format!("is above {whole}={}", upstream.total_timeout_ms);
        let cure = format!("lower it, or raise {whole}");
        let value = upstream.connect_timeout_ms.to_string();
        found.push((vec![name, whole], fault(name, value, problem, cure)));
    }
    if let (Some(url), false) = (&config.valkey.url, cfg!(feature = "engines")) {
        let problem = "needs a program that can speak to such a server; this one was built without";
        let cure = "build with --features engines, or unset it to use the file on disk";
        let name = "BHAV_CACHE_URL";
        found.push((vec![name], fault(name, url.to_string(), problem.into(), cure.into())));
    }
    if let Some(fault) = one_address_twice(config) {
        found.push((vec!["BHAV_LISTEN", "BHAV_ADMIN_LISTEN"], fault));
    }
    for setting in SETTINGS.iter().filter(|setting| setting.names_a_file()) {
        let path = (setting.show)(config);
        if let Some(problem) = unusable_file(&path) {
            let cure = "name a readable file, or unset it to do without".to_owned();
            found.push((vec![setting.name], fault(setting.name, path, problem, cure)));
        }
    }
    found
}

/// The operator's listener cannot have the address of the clients'. Port 0 takes a free one each.
fn one_address_twice(config: &Config) -> Option<Fault> {
    // Without the default one the service starts all the same.
    let given = (config.admin.listen != Config::default().admin.listen).then_some(config)?;
    let admin = given.admin.listen.address()?;
    let clients = &config.http.listen;
    let is_same = match (clients.parse::<SocketAddr>(), admin.parse::<SocketAddr>()) {
        (Ok(one), Ok(other)) => {
            let covers = one.ip() == other.ip()
                || one.ip().is_unspecified() && one.is_ipv4() == other.is_ipv4()
                || other.ip().is_unspecified() && one.is_ipv4() == other.is_ipv4();
            one.port() != 0 && one.port() == other.port() && covers
        }
        _ => clients == admin,
    };
    is_same.then(|| {
        let problem = format!("is taken by BHAV_LISTEN={clients}");
        let cure = "give another port, or off".to_owned();
        fault("BHAV_ADMIN_LISTEN", admin.to_owned(), problem, cure)
    })
}

/// Nodes that share a database accept each other's tokens, so none may sign with a key of its own.
pub(crate) fn missing_key(config: &Config) -> Option<Fault> {
    if config.store.url.is_none() || config.auth.jwt_secret.is_some() {
        return None;
    }
    let problem = format!("is not set, and BHAV_STORE_URL needs it: {}", NoSharedKey::REASON);
    let cure = NoSharedKey::CURE.to_owned();
    Some(Fault {
        name: "JWT_SECRET".into(),
        value: None,
        origin: None,
        problem,
        cure,
    })
}

/// The service cannot start as one of several nodes without a shared key.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("BHAV_STORE_URL needs JWT_SECRET: {}; {}", Self::REASON, Self::CURE)]
pub struct NoSharedKey;

impl NoSharedKey {
    const REASON: &str = "nodes that sign with keys of their own refuse each other's tokens";
    const CURE: &str = "give all nodes the same one, best as the credential bhav.jwt_secret, \
                        which is seen inside the unit alone";
}

fn fault(name: &str, value: String, problem: String, cure: String) -> Fault {
    Fault {
        name: name.into(),
        value: Some(value),
        origin: None,
        problem,
        cure,
    }
}

fn unusable_file(path: &str) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    match std::fs::File::open(path).and_then(|file| file.metadata()) {
        Ok(about) if about.is_file() => None,
        Ok(_) => Some("is no regular file".to_owned()),
        Err(why) => Some(format!("cannot be opened: {why}")),
    }
}

/// Adds warnings about settings that are allowed and dangerous.
pub(super) fn warn(loaded: &mut Loaded, env: &Environment) {
    let Loaded {
        config,
        origins,
        warnings,
    } = loaded;
    warnings.extend(listening_outside(config));
    if config
        .http
        .trusted_proxies
        .iter()
        .any(Network::is_everything)
    {
        warnings.push(
            "BHAV_TRUSTED_PROXIES names every address: each client can claim to be any other, and \
             limits by client address hold nobody; name the proxies' own network"
                .to_owned(),
        );
    }
    warnings.extend(exposed(config).into_iter().map(|exposed| exposed.warning));
    if let (Some(url), None) = (&config.valkey.url, &config.store.url) {
        warnings.push(format!(
            "BHAV_CACHE_URL={url} without BHAV_STORE_URL: this node is alone, and the server is \
             its second cache level and no more"
        ));
    }
    if let (Some(name), None) = (&config.nodes.name, &config.store.url) {
        warnings.push(format!("BHAV_NODE={name} has no effect without BHAV_STORE_URL"));
    }
    let in_environment: Vec<&str> = SECRETS
        .iter()
        .map(|secret| secret.name)
        .filter(|name| origins.get(name) == Some(&Origin::Environment))
        .collect();
    if !in_environment.is_empty() {
        warnings.push(format!(
            "{} came from the environment, which child processes and /proc show; prefer systemd \
             credentials or <NAME>_FILE",
            in_environment.join(", ")
        ));
    }
    for name in REMOVED.iter().filter(|name| env.has(name)) {
        let origin = env.origin(name);
        warnings.push(format!(
            "{name} ({origin}) is no longer a setting and changes nothing; remove the line"
        ));
    }
    for name in env.names().filter(|name| is_stray(name)) {
        warnings.push(format!(
            "{name} is no setting of bhav; it has JWT_SECRET and JWT_PREVIOUS_SECRETS"
        ));
    }
}

/// A warning for each listener that machines other than this one reach.
fn listening_outside(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    let listening = [
        (
            "BHAV_LISTEN",
            Some(config.http.listen.as_str()),
            ": sharing live exchange prices in public is regulated in India and needs the consent \
             of the exchanges; plain HTTP also needs a TLS proxy in front",
        ),
        (
            "BHAV_ADMIN_LISTEN",
            config.admin.listen.address(),
            " and shows everybody how the service is doing",
        ),
        (
            "BHAV_SIM_LISTEN",
            Some(config.sim.listen.as_str()),
            ", and the simulator has no access control",
        ),
    ];
    for (name, address, danger) in listening {
        if let Some(Ok(address)) = address.map(str::parse::<SocketAddr>)
            && !address.ip().to_canonical().is_loopback()
        {
            warnings
                .push(format!("{name}={address} can be reached from outside this machine{danger}"));
        }
    }
    warnings
}

/// A setting with which others on the network can read the traffic, or use services meant for
/// nodes.
#[derive(Debug)]
pub(crate) struct Exposed {
    pub setting: &'static str,
    pub reason: ExposedReason,
    /// The warning as text. Holds no secret.
    pub warning: String,
}

/// The settings of connections to other machines that are unencrypted or have no password.
pub(crate) fn exposed(config: &Config) -> Vec<Exposed> {
    let mut found = Vec::new();
    let mut clear_text = |setting, warning| {
        found.push(Exposed {
            setting,
            reason: ExposedReason::ClearText,
            warning,
        });
    };
    for setting in SETTINGS
        .iter()
        .filter(|setting| setting.is_address_of_a_broker())
    {
        let name = setting.name;
        let url = (setting.show)(config);
        let scheme = if url.starts_with("ws") {
            "wss://"
        } else {
            "https://"
        };
        if is_plain_and_remote(&url) {
            clear_text(name, format!("{name}={url} sends tokens unencrypted; use {scheme}"));
        }
    }
    if let Some(url) = config.store.url.as_ref().filter(|url| url.is_exposed()) {
        let warning = format!(
            "BHAV_STORE_URL={url} sends accounts and portfolios unencrypted; use \
             sslmode=verify-full"
        );
        clear_text("BHAV_STORE_URL", warning);
    }
    let Some(url) = &config.valkey.url else {
        return found;
    };
    let Place::Tcp { host, tls, .. } = &url.place else {
        return found;
    };
    if is_this_machine(host) {
        return found;
    }
    if !tls {
        let warning = format!(
            "BHAV_CACHE_URL={url} sends the server's password and prices unencrypted; use \
             rediss:// or valkeys://"
        );
        clear_text("BHAV_CACHE_URL", warning);
    }
    if config.valkey.password.is_none() {
        let warning = format!(
            "BHAV_CACHE_PASSWORD is not set, so anybody who reaches BHAV_CACHE_URL={url} can use \
             that server; give it a user with a password"
        );
        let setting = "BHAV_CACHE_PASSWORD";
        let reason = ExposedReason::NoPassword;
        found.push(Exposed {
            setting,
            reason,
            warning,
        });
    }
    found
}

fn is_plain_and_remote(url: &str) -> bool {
    let plain = url.starts_with("http://") || url.starts_with("ws://");
    let uri = url.parse::<ureq::http::Uri>().ok().filter(|_| plain);
    let host = uri.as_ref().and_then(ureq::http::Uri::host);
    host.is_some_and(|host| !is_this_machine(host.trim_matches(['[', ']'])))
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

/// Whether an unknown variable was probably meant for bhav. Only a warning, because other programs
/// use names with this prefix too.
fn is_stray(name: &str) -> bool {
    name.starts_with(SHARED_PREFIX) && !is_known(name)
}

#[cfg(test)]
mod tests {
    use super::super::load::load;
    use super::*;
    use crate::config::environment::Flags;

    fn load_env(pairs: &[(&str, &str)]) -> Result<Loaded, Vec<Fault>> {
        load(&Flags::new(), &Environment::from_pairs(pairs.iter().copied()))
    }

    #[test]
    fn contradictions_and_missing_files_are_faults() {
        for (name, value) in [
            ("BHAV_UPSTREAM_CONNECT_TIMEOUT_MS", "8000"),
            ("BHAV_CALENDAR_FILE", "no/such/file"),
            ("BHAV_INDICES_FILE", "."),
            ("BHAV_UNIVERSE_FILE", "no/such/file"),
            ("BHAV_SECTORS_FILE", "no/such/file"),
            ("BHAV_FMV_FILE", "no/such/file"),
        ] {
            let faults = load_env(&[(name, value)]).unwrap_err();
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert_eq!(faults[0].name, name);
        }
    }

    #[test]
    fn two_listeners_need_two_addresses() {
        for (clients, admin, is_good) in [
            ("127.0.0.1:82", "127.0.0.1:82", false),
            ("127.0.0.1:9464", "127.0.0.1:9464", false),
            ("0.0.0.0:81", "127.0.0.1:81", false),
            ("[::1]:81", "[::]:81", false),
            ("unix:/run/a", "unix:/run/a", false),
            ("127.0.0.1:81", "127.0.0.2:81", true),
            ("127.0.0.1:81", "[::1]:81", true),
            ("127.0.0.1:0", "127.0.0.1:0", true),
            ("unix:/run/a", "unix:/run/b", true),
            ("127.0.0.1:81", "off", true),
        ] {
            let given = load_env(&[("BHAV_LISTEN", clients), ("BHAV_ADMIN_LISTEN", admin)]);
            let faults = given.map(drop).map_err(|faults| faults[0].to_string());
            assert_eq!(faults.is_ok(), is_good, "{clients} {admin}: {faults:?}");
            if let Err(text) = faults {
                assert!(text.contains("is taken by BHAV_LISTEN="), "{text}");
            }
        }
    }

    #[test]
    #[cfg(feature = "engines")]
    fn a_node_of_several_needs_the_key_of_all_and_other_commands_do_not() {
        use super::super::load::load_with;
        let url = ("BHAV_STORE_URL", "postgres://bhav@db.example.com/bhav");
        let key = ("JWT_SECRET", "a key that all the nodes know, as they must");
        let service = |pairs: &[(&str, &str)]| {
            let env = Environment::from_pairs(pairs.iter().copied());
            load_with(&Flags::new(), &env, None, missing_key)
        };
        let faults = service(&[url, ("BHAV_MAX_CONNECTIONS", "0")]).unwrap_err();
        assert_eq!(faults.len(), 2, "all at once: {faults:?}");
        let text = faults[1].to_string();
        assert!(text.starts_with("JWT_SECRET is not set") && text.contains("cure: give all nodes"));
        assert!(service(&[url, key]).is_ok() && service(&[]).is_ok() && load_env(&[url]).is_ok());
        let short = service(&[url, ("JWT_SECRET", "short")]).unwrap_err();
        assert_eq!(short.len(), 1, "{short:?}");
    }

    #[test]
    #[cfg(feature = "engines")]
    fn settings_of_a_cluster_without_its_database_give_a_warning() {
        let cache = ("BHAV_CACHE_URL", "unix:/run/valkey.sock");
        let node = ("BHAV_NODE", "a");
        let warnings = load_env(&[cache, node]).unwrap().warnings.join("\n");
        assert!(warnings.contains("this node is alone") && warnings.contains("BHAV_NODE=a has no"));
        let url = ("BHAV_STORE_URL", "postgres://bhav@db.example.com/bhav");
        assert!(load_env(&[url, cache, node]).unwrap().warnings.is_empty());
    }

    #[test]
    #[cfg(feature = "engines")]
    fn clear_text_to_another_machine_and_a_server_without_a_password_give_a_warning() {
        let password = ("BHAV_CACHE_PASSWORD", "sesame");
        let store = |url| vec![("BHAV_STORE_URL", url)];
        let cache = |url| vec![("BHAV_CACHE_URL", url), password];
        let open = |url| vec![("BHAV_CACHE_URL", url)];
        for (settings, expected) in [
            (store("postgres://bhav@10.0.0.5/bhav?sslmode=disable"), &["clear_text"][..]),
            (
                store("postgres://bhav@127.0.0.1,10.0.0.5/bhav?sslmode=disable"),
                &["clear_text"],
            ),
            (store("postgres://bhav@127.0.0.1/bhav?sslmode=disable"), &[]),
            (store("postgres:///bhav?host=/run/postgresql"), &[]),
            (store("postgres://bhav@10.0.0.5/bhav?sslmode=verify-full"), &[]),
            (store("postgres://bhav@10.0.0.5/bhav?sslmode=require"), &[]),
            (store("postgres://bhav@10.0.0.5/bhav"), &[]),
            (cache("redis://10.0.0.5:6379"), &["clear_text"]),
            (cache("valkey://bhav@cache.lan"), &["clear_text"]),
            (cache("rediss://bhav@cache.lan"), &[]),
            (cache("valkeys://[2001:db8::1]:6379"), &[]),
            (open("rediss://bhav@cache.lan"), &["no_password"]),
            (open("redis://cache.lan"), &["clear_text", "no_password"]),
            (open("redis://[::1]"), &[]),
            (open("redis://localhost"), &[]),
            (open("unix:/run/valkey.sock"), &[]),
        ] {
            let loaded = load_env(&settings).unwrap();
            let found = exposed(&loaded.config);
            let reasons: Vec<_> = found
                .iter()
                .map(|exposed| exposed.reason.as_str())
                .collect();
            assert_eq!(reasons, expected, "{settings:?}");
            let warned = |exposed: &Exposed| loaded.warnings.contains(&exposed.warning);
            assert!(found.iter().all(warned), "{:?}", loaded.warnings);
        }
    }

    #[test]
    fn dangerous_settings_give_a_warning_and_safe_ones_none() {
        assert!(load_env(&[]).unwrap().warnings.is_empty());
        for (name, value, expected) in [
            ("BHAV_LISTEN", "0.0.0.0:8080", "regulated in India"),
            ("BHAV_LISTEN", "[::]:8080", "regulated in India"),
            ("BHAV_ADMIN_LISTEN", "0.0.0.0:9464", "how the service is doing"),
            ("BHAV_SIM_LISTEN", "0.0.0.0:1", "simulator"),
            ("BHAV_TRUSTED_PROXIES", "10.0.0.0/8,::/0", "names every address"),
            ("BHAV_BROKERA_URL", "http://api.example", "unencrypted"),
            ("BHAV_BROKERA_TICKER_URL", "ws://ws.example", "use wss://"),
            ("BROKERA_API_KEY", "k", "came from the environment"),
            ("JWT_ALGORITHM", "k", "JWT_ALGORITHM is no setting"),
        ] {
            let warnings = load_env(&[(name, value)]).unwrap().warnings.join("\n");
            assert!(warnings.contains(expected), "{name}={value}: {warnings}");
        }
        for (name, value) in [
            ("BHAV_LISTEN", "[::1]:8080"),
            ("BHAV_LISTEN", "unix:/run/x"),
            ("BHAV_ADMIN_LISTEN", "off"),
            ("BHAV_BROKERA_URL", "http://127.0.0.1:1"),
            ("BHAV_BROKERA_URL", "http://[::1]:1"),
            ("BHAV_TRUSTED_PROXIES", "127.0.0.0/8,fd00::/8"),
        ] {
            let warnings = load_env(&[(name, value)]).unwrap().warnings;
            assert!(warnings.is_empty(), "{name}={value}: {warnings:?}");
        }
    }
}
