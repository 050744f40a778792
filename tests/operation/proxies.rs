//! The blocks of docs/proxies.md as they stand there, but for addresses and files, in front of the
//! service: what browsers and programs send goes through each.
//!
//! A test whose program is not installed says so and passes; `.ci/run` installs them.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use sonic_rs::JsonValueTrait;

use crate::support::{Process, Scene, Service, until};

pub(super) const PAGE: &str = include_str!("../../docs/proxies.md");
pub(super) const NAME: &str = "bhav.example";
const EMAIL: &str = "asha@mail.example";
const PASSWORD: &str = "correct horse";
const JSON: &str = "Content-Type: application/json";
const ENTRY: &str =
    r#"{"traded_on":"2026-11-20","symbol":"NSE:M&M","side":"buy","quantity":10,"price":3012.05}"#;

/// The block of the page in this language.
fn block(language: &str) -> &'static str {
    let begin = format!("```{language}\n");
    let (_, after) = PAGE.split_once(&begin).expect(language);
    after.split_once("```").unwrap().0
}

/// Replaces what stands there, which must be there.
fn with(block: &str, replaced: &[(&str, &str)]) -> String {
    replaced.iter().fold(block.to_owned(), |block, (from, to)| {
        assert!(block.contains(from), "{from} is not in the page's block:\n{block}");
        block.replace(from, to)
    })
}

/// A proxy that runs, and how to reach it.
struct Front {
    _proxy: Process,
    port: u16,
    dir: tempfile::TempDir,
}

/// What came back, as curl shows it.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    #[track_caller]
    fn with_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}{}", self.head, self.body);
        self
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    fn member(&self, name: &str) -> String {
        let json: sonic_rs::Value = sonic_rs::from_str(&self.body).unwrap();
        json[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name} in {}", self.body))
            .to_owned()
    }
}

impl Front {
    fn curl(&self, path: &str, more: &[&str]) -> Command {
        let mut command = Command::new("curl");
        let at = format!("{NAME}:{}:127.0.0.1", self.port);
        command.args(["-sk", "--max-time", "50", "--http1.1", "--resolve", &at]);
        command.args(more).arg(format!("{}{path}", self.origin()));
        command
    }

    fn origin(&self) -> String {
        format!("https://{NAME}:{}", self.port)
    }

    fn ask(&self, path: &str, more: &[&str]) -> Reply {
        let output = self.curl(path, &[&["-i"], more].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| {
            panic!("{path} {more:?}: {text:?} {:?}", output.status);
        });
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// A request with a body of a page of this site.
    fn by_page(&self, method: &str, path: &str, lines: &[&str], body: &str) -> Reply {
        let origin = format!("Origin: {}", self.origin());
        let mut more = vec![
            "-X",
            method,
            "-H",
            JSON,
            "-H",
            &origin,
            "--data-binary",
            body,
        ];
        lines.iter().for_each(|line| more.extend(["-H", *line]));
        self.ask(path, &more)
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// A certificate and its key, apart and in one file.
fn certificate(dir: &Path) {
    let command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
                   -keyout key.pem -out cert.pem -days 2 -subj /CN=bhav.example 2>/dev/null && \
                   cat cert.pem key.pem >both.pem";
    let made = Command::new("sh")
        .args(["-c", command])
        .current_dir(dir)
        .status()
        .unwrap();
    assert!(made.success());
}

/// If set to `required`, a test fails instead of being left out.
const ENGINES: &str = "BHAV_TEST_ENGINES";

#[expect(
    clippy::print_stderr,
    reason = "says what a run of the tests leaves out"
)]
pub(super) fn left_out(program: &str) {
    assert!(
        std::env::var(ENGINES).as_deref() != Ok("required"),
        "{program} is not installed"
    );
    eprintln!("left out: {program} is not installed, so its block of docs/proxies.md is not tried");
}

/// Starts a proxy with the configuration that `configured` writes for a folder and a port.
fn front(
    program: &str,
    service: &Service,
    configured: impl Fn(&str, u16, &str) -> (String, Vec<String>),
) -> Option<Front> {
    let dir = tempfile::tempdir().unwrap();
    certificate(dir.path());
    let shown = dir.path().display().to_string();
    let port = free_port();
    let (text, args) = configured(&shown, port, service.0.address());
    std::fs::write(dir.path().join("config"), text).unwrap();
    let log = std::fs::File::create(dir.path().join("log")).unwrap();
    let mut command = Command::new(program);
    command
        .args(args)
        .env("HOME", &shown)
        .env("XDG_DATA_HOME", &shown)
        .env("XDG_CONFIG_HOME", &shown);
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    let child = match command.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            left_out(program);
            return None;
        }
        child => child.unwrap(),
    };
    let mut front = Front {
        _proxy: Process { child },
        port,
        dir,
    };
    until(&format!("{program} to answer"), || {
        let log = std::fs::read_to_string(front.dir.path().join("log")).unwrap_or_default();
        let ended = front._proxy.child.try_wait().unwrap();
        assert!(ended.is_none(), "{program} has ended: {log}");
        front
            .curl("/api/health", &["-f"])
            .output()
            .unwrap()
            .status
            .success()
    });
    Some(front)
}

fn started() -> (Scene, Service) {
    let (scene, service) = Scene::trading_with(|config| {
        config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    service.register(EMAIL, PASSWORD);
    service.fresh_snapshot();
    (scene, service)
}

/// Everything that the page promises of a block.
fn walk(front: &Front) {
    polled(front);
    let cookie = logged_in(front);
    journal(front, &cookie);
    streamed(front);
    refused(front);
    seen(front);
}

fn polled(front: &Front) {
    until("a 304", || {
        let first = front
            .ask("/api/index/snapshot", &["-H", "Accept-Encoding: br"])
            .with_status(200);
        assert!(first.body.is_empty() || first.header("content-encoding") == Some("br"));
        let tag = format!("If-None-Match: {}", first.header("etag").unwrap());
        let more = ["-H", "Accept-Encoding: br", "-H", &tag];
        // The snapshot may change between the two.
        front.ask("/api/index/snapshot", &more).status == 304
    });
}

fn logged_in(front: &Front) -> String {
    let body = format!("{{\"email\":\"{EMAIL}\",\"password\":\"{PASSWORD}\",\"cookie\":true}}");
    let path = "/api/auth/login";
    // A browser of today, and one that does not say what the page is to the site.
    for lines in [&["Sec-Fetch-Site: same-origin"][..], &[]] {
        let answer = front.by_page("POST", path, lines, &body).with_status(200);
        assert!(answer.head.contains("; Secure"), "{}", answer.head);
    }
    let other = [
        "-H",
        "Origin: https://evil.example",
        "-H",
        JSON,
        "-d",
        &body,
    ];
    let refused = front.ask(path, &other).with_status(403);
    assert!(
        refused.body.contains("evil.example") && refused.body.contains(NAME),
        "{}",
        refused.body
    );
    let answer = front.by_page("POST", path, &[], &body);
    let set = answer.header("set-cookie").unwrap();
    format!("Cookie: {}", set.split(';').next().unwrap())
}

fn journal(front: &Front, cookie: &str) {
    let added = front
        .by_page("POST", "/api/journal", &[cookie], ENTRY)
        .with_status(201);
    let path = added.header("location").unwrap().to_owned();
    let revision = added.member("revision");
    let strong = format!("If-Match: \"{revision}\"");
    let replaced = front
        .by_page("PUT", &path, &[cookie, &strong], ENTRY)
        .with_status(200);
    front
        .by_page("PUT", &path, &[cookie, &strong], ENTRY)
        .with_status(412);
    let revision = replaced.member("revision");
    let body = ENTRY.replacen('{', &format!("{{\"revision\":\"{revision}\","), 1);
    let replaced = front
        .by_page("PUT", &path, &[cookie], &body)
        .with_status(200);
    front
        .by_page("PUT", &path, &[cookie], &body)
        .with_status(412);
    // Whatever the proxy makes of the tag, the answer says it where that is why.
    let shown = front.ask(&path, &["-H", cookie, "-H", "Accept-Encoding: gzip", "--compressed"]);
    let tag = shown.with_status(200).header("etag").unwrap().to_owned();
    let changed = front.by_page("PUT", &path, &[cookie, &format!("If-Match: {tag}")], ENTRY);
    if tag == format!("\"{}\"", replaced.member("revision")) {
        assert_eq!(changed.status, 200, "{}", changed.body);
    } else {
        assert!(changed.body.contains("a proxy that compresses"), "{tag} {}", changed.body);
    }
}

/// Events come while the stream is open.
fn streamed(front: &Front) {
    let mut command = front.curl("/api/index/stream", &["-N", "-i"]);
    let mut curl = Process::start(command.stdout(Stdio::piped()));
    let mut lines = BufReader::new(curl.child.stdout.take().unwrap()).lines();
    let mut snapshots = 0;
    while snapshots < 3 {
        let line = lines.next().expect("the stream ended").unwrap();
        snapshots += usize::from(line.trim_end() == "event: snapshot");
    }
}

fn refused(front: &Front) {
    let page = "Accept: text/html,*/*;q=0.8";
    let cookies = format!("Cookie: other={}", "v".repeat(17_000));
    let answer = front
        .ask("/", &["-H", page, "-H", &cookies])
        .with_status(431);
    assert!(answer.body.contains("cookies of this host name"), "{}", answer.body);
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    let answer = front
        .ask("/", &["-H", "Accept: */*", "-H", &cookies])
        .with_status(431);
    assert_eq!(answer.member("code"), "head_too_large");
    let long = format!("/{}", "x".repeat(9_000));
    let answer = front.ask(&long, &["-H", page]).with_status(414);
    assert!(answer.body.contains("longer than 8 KiB"), "{}", answer.body);
    let missing = front.ask("/nothing/here", &["-H", page]).with_status(404);
    assert!(missing.body.starts_with("<!doctype html>"), "{}", missing.body);
    let large = "b".repeat(64 * 1024 + 1);
    let file = front.dir.path().join("large");
    std::fs::write(&file, large).unwrap();
    let data = format!("@{}", file.display());
    let sent = ["-H", JSON, "-H", "Expect:", "--data-binary", &data];
    front.ask("/api/auth/login", &sent).with_status(413);
}

/// The client's address reaches the service, and not one that the client makes up.
fn seen(front: &Front) {
    let login = format!("{{\"email\":\"{EMAIL}\",\"password\":\"{PASSWORD}\"}}");
    let token = front
        .by_page("POST", "/api/auth/login", &[], &login)
        .member("access_token");
    let bearer = format!("Authorization: Bearer {token}");
    let order = format!(
        "{{\"name\":\"seen\",\"scopes\":[\"market:read\"],\"current_password\":\"{PASSWORD}\"}}"
    );
    let made = front
        .by_page("POST", "/api/keys", &[&bearer], &order)
        .with_status(201);
    let key = format!("Authorization: Bearer {}", made.member("key"));
    let forged = "X-Forwarded-For: 203.0.113.9";
    let more = ["--interface", "127.0.5.5", "-H", &key, "-H", forged];
    front.ask("/api/index/snapshot", &more).with_status(200);
    until("the key's network", || {
        let keys = front.ask("/api/keys", &["-H", &bearer]).with_status(200);
        assert!(!keys.body.contains("203.0.113"), "{}", keys.body);
        keys.body.contains("\"last_used_from\":\"127.0.5.0/24\"")
    });
}

fn nginx(compresses: bool) {
    let (_scene, service) = started();
    let Some(front) = front("nginx", &service, |dir, port, address| {
        let listen = format!("listen 127.0.0.1:{port} ssl http2");
        let cert = format!("{dir}/cert.pem");
        let key = format!("{dir}/key.pem");
        let server = format!("server {address};");
        let block = with(
            block("nginx"),
            &[
                ("server 127.0.0.1:8080;", &server),
                ("listen 443 ssl http2", &listen),
                ("/etc/ssl/bhav.pem", &cert),
                ("/etc/ssl/bhav.key", &key),
            ],
        );
        let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths: String = kinds
            .iter()
            .map(|kind| format!("{kind}_temp_path {dir}/{kind};\n"))
            .collect();
        let gzip = match compresses {
            true => "gzip on; gzip_types application/json; gzip_proxied any; gzip_min_length 1;\n",
            false => "",
        };
        let text = format!(
            "daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log;\n\
             events {{}}\nhttp {{\naccess_log off;\n{paths}{gzip}{block}}}\n"
        );
        (
            text,
            vec![
                "-e".into(),
                format!("{dir}/error.log"),
                "-c".into(),
                format!("{dir}/config"),
            ],
        )
    }) else {
        return;
    };
    walk(&front);
}

#[test]
fn the_block_of_nginx_carries_everything() {
    nginx(false);
}

#[test]
fn the_block_of_nginx_carries_everything_where_it_compresses() {
    nginx(true);
}

#[test]
fn the_block_of_caddy_carries_everything() {
    let (_scene, service) = started();
    let Some(front) = front("caddy", &service, |dir, port, address| {
        let block = with(block("caddyfile"), &[("127.0.0.1:8080", address)]);
        let text = format!(
            "{{\nadmin off\nlocal_certs\nskip_install_trust\nauto_https disable_redirects\n\
             https_port {port}\ndefault_bind 127.0.0.1\n}}\n{block}"
        );
        let config = format!("{dir}/config");
        (
            text,
            ["run", "--adapter", "caddyfile", "--config", &config]
                .map(str::to_owned)
                .into(),
        )
    }) else {
        return;
    };
    walk(&front);
}

#[test]
fn the_block_of_haproxy_carries_everything() {
    let (_scene, service) = started();
    let Some(front) = front("haproxy", &service, |dir, port, address| {
        let bind = format!("bind 127.0.0.1:{port} ssl");
        let pem = format!("{dir}/both.pem");
        let server = format!("server bhav {address}");
        let block = with(
            block("haproxy"),
            &[
                ("bind :443 ssl", &bind),
                ("/etc/haproxy/bhav.pem", &pem),
                ("server bhav 127.0.0.1:8080", &server),
            ],
        );
        (block, vec!["-db".into(), "-f".into(), format!("{dir}/config")])
    }) else {
        return;
    };
    walk(&front);
}

/// Every Caddyfile of the repository closes idle connections before the service does.
#[test]
fn every_caddyfile_keeps_idle_connections_for_less_than_the_service() {
    for (name, text) in [
        ("docs/proxies.md", block("caddyfile")),
        ("single", include_str!("../../examples/compose/single/Caddyfile")),
        ("nodes", include_str!("../../examples/compose/nodes/Caddyfile")),
    ] {
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("keepalive "));
        let seconds = line.and_then(|rest| rest.split('s').next()).expect(name);
        let idle_ms = bhav::http::settings::HttpSettings::default().idle_timeout_ms;
        assert!(seconds.parse::<u64>().unwrap() * 1_000 < idle_ms, "{name}");
    }
}
