//! SIGHUP to the real program: settings that change live, on a connection that stays open, and a
//! bad file, which is reported and changes nothing.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::supervised::Ear;
use crate::support::scrape::Scrape;
use crate::support::{
    Answer, Client, PRICES, Program, SNAPSHOT, Scene, Signal, TRADING, UNIVERSE, bearer, bhav,
    until,
};

const ONE: &str = "the first key of thirty-two bytes or more";
const TWO: &str = "the second key of thirty-two bytes or more";
const LOGIN: &str = r#"{"email":"a@b.example","password":"a long enough password"}"#;

/// Files with broker A's app and token, as the simulator knows them.
const KEYS: &str = "BROKERA_API_KEY_FILE=@key\nBROKERA_ACCESS_TOKEN_FILE=@token\n";
const KEY_FILES: [(&str, &str); 2] = [("key", "simkeya"), ("token", "simtokena")];

/// A running program and the files that it reads.
struct Subject {
    scene: Scene,
    program: Program,
    ear: Ear,
    client: Client,
}

impl Subject {
    /// Starts with these lines of settings.
    fn start(files: &[(&str, &str)], lines: &str) -> Self {
        let scene = Scene::at(TRADING);
        let ear = Ear::at(&scene.state.path().join("notify"));
        for (name, text) in files {
            write(&scene, name, text);
        }
        write(&scene, "bhav.env", &in_place(&scene, lines));
        let log = File::create(scene.state.path().join("log")).unwrap();
        let mut command = bhav(&[
            "serve",
            "--listen=127.0.0.1:0",
            "--admin-listen=127.0.0.1:0",
        ]);
        command
            .args(scene.flags(scene.state.path()))
            .env("BHAV_ENV_FILE", scene.state.path().join("bhav.env"))
            .env("NOTIFY_SOCKET", scene.state.path().join("notify"))
            .stderr(Stdio::from(log));
        let program = Program::of(&mut command);
        ear.until("readiness", |heard| heard.contains("READY=1"));
        let client = program.client();
        Self {
            scene,
            program,
            ear,
            client,
        }
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.scene, name, text);
    }

    /// Replaces the settings, and returns once they were read.
    fn reload(&mut self, lines: &str) {
        self.write("bhav.env", &in_place(&self.scene, lines));
        self.program.signal(Signal::HUP);
        let said = self
            .ear
            .until("a reload", |heard| heard.contains("RELOADING=1"));
        assert!(said.contains("MONOTONIC_USEC="), "{said}");
        self.ear.until("its end", |heard| heard.contains("READY=1"));
    }

    /// Same as [`reload`](Self::reload), and expects that they are in force.
    fn reload_well(&mut self, lines: &str) {
        self.reload(lines);
        let log = std::fs::read_to_string(self.scene.state.path().join("log")).unwrap();
        assert!(!log.contains("reload refused"), "{log}");
    }

    /// The log's lines that have `part`, at least one.
    fn logged(&self, part: &str) -> String {
        let path = self.scene.state.path().join("log");
        until(part, || {
            let log = std::fs::read_to_string(&path).unwrap();
            let found: Vec<_> = log.lines().filter(|line| line.contains(part)).collect();
            (!found.is_empty()).then(|| found.join("\n"))
        })
    }

    fn login(&self) -> Answer {
        // Uses another connection, since a refusal may end one.
        let mut client = Client::connect(&self.program.address);
        client.send_json("POST", "/api/auth/login", "", LOGIN)
    }

    fn me(&mut self, token: &str) -> u16 {
        let header = format!("Authorization: Bearer {token}\r\n");
        self.client
            .request("GET", "/api/portfolio/holdings", &header)
            .status
    }

    fn market(&mut self) -> Value {
        self.client.get(SNAPSHOT).json()["market"].clone()
    }

    fn until_market(&mut self, what: &str, holds: impl Fn(&Value) -> bool) {
        until(what, || Some(self.market()).filter(|market| holds(market)));
    }

    fn until_health(&mut self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        until(what, || Some(self.client.get("/api/health").json()).filter(&holds))
    }

    fn scrape(&self) -> Scrape {
        let mut lines = self.program.printed.lines();
        let url = lines
            .find_map(|line| line.strip_prefix("metrics on http://"))
            .unwrap();
        let address = url.strip_suffix("/metrics").unwrap();
        Scrape::parse(Client::connect(address).get("/metrics").text())
    }

    fn allows(&mut self, origin: &str) -> bool {
        let answer = self
            .client
            .request("GET", SNAPSHOT, &format!("Origin: {origin}\r\n"));
        answer.header("access-control-allow-origin") == Some(origin)
    }
}

fn write(scene: &Scene, name: &str, text: &str) {
    let path: PathBuf = scene.state.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
}

/// `@name` stands for the path of a file in the state directory.
fn in_place(scene: &Scene, lines: &str) -> String {
    let lines = lines.replace('@', &format!("{}/", scene.state.path().display()));
    if lines.contains("BHAV_UNIVERSE_FILE") {
        return lines;
    }
    // Set without a flag, which would override the tests' own file.
    format!("{lines}BHAV_UNIVERSE_FILE={UNIVERSE}\n")
}

fn token_of(answer: &Answer) -> String {
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
    answer.field("access_token")
}

#[test]
fn signing_keys_change_and_earlier_ones_last_while_they_are_given() {
    let mut subject = Subject::start(&[("one", ONE), ("two", TWO)], "JWT_SECRET_FILE=@one\n");
    let registered = subject
        .client
        .send_json("POST", "/api/auth/register", "", LOGIN);
    let first = token_of(&registered);
    assert_eq!(subject.me(&first), 200);
    subject.reload_well("JWT_SECRET_FILE=@two\nJWT_PREVIOUS_SECRETS_FILE=@one\n");
    let second = token_of(&subject.login());
    assert_eq!((subject.me(&first), subject.me(&second)), (200, 200));
    subject.reload("JWT_SECRET_FILE=@two\n");
    assert_eq!((subject.me(&first), subject.me(&second)), (401, 200));
    assert!(
        subject
            .logged("message=reloaded")
            .contains("JWT_PREVIOUS_SECRETS")
    );
}

fn register(subject: &mut Subject, who: &str) -> Answer {
    subject
        .client
        .account("register", &format!("{who}@mail.example"), "nine green parrots")
}

#[test]
fn registration_is_closed_and_opened_while_accounts_go_on() {
    let mut subject = Subject::start(&[], "BHAV_REGISTRATION=closed\n");
    register(&mut subject, "a").expect_problem(403, "registration_closed");
    subject.reload("BHAV_REGISTRATION=open\n");
    let token = token_of(&register(&mut subject, "a"));
    subject.reload("BHAV_REGISTRATION=closed\n");
    register(&mut subject, "a").expect_problem(403, "registration_closed");
    register(&mut subject, "b").expect_problem(403, "registration_closed");
    assert_eq!(subject.me(&token), 200);
    assert_eq!(
        subject
            .client
            .account("login", "a@mail.example", "nine green parrots")
            .status,
        200
    );
    subject.reload("BHAV_REGISTRATION=maybe\n");
    assert!(
        subject
            .logged("reload refused")
            .contains("BHAV_REGISTRATION")
    );
    register(&mut subject, "b").expect_problem(403, "registration_closed");
}

#[test]
fn an_open_registration_is_said_at_the_start_and_one_for_the_first_account_too() {
    for (lines, word) in [
        ("", "registration is open: whoever reaches this service"),
        ("BHAV_REGISTRATION=first\n", "for the first account of the database"),
    ] {
        let subject = Subject::start(&[], lines);
        assert!(subject.logged(word).contains("BHAV_REGISTRATION=first"), "{lines}");
    }
}

#[test]
fn a_code_that_is_put_into_a_path_is_not_logged() {
    let mut subject = Subject::start(&[], "");
    for path in [
        "/return/a/canarycode",
        "/return/a/request_token=canarycode",
        "/%72eturn/b/canarycode",
        "/Return/a/canarycode",
        "//return/a/canarycode",
        "/api/return/canarycode",
        "/return/acanarycode",
    ] {
        let asked = format!("X-Request-Id: asked{}\r\n", path.len());
        assert_eq!(subject.client.request("GET", path, &asked).status, 404, "{path}");
        let line = subject.logged(&format!("request_id=asked{}", path.len()));
        assert!(line.contains("/return...") && !line.contains("canarycode"), "{line}");
    }
    let missing = subject
        .client
        .request("GET", "/return/a", "X-Request-Id: bare\r\n");
    missing.expect_problem(400, "validation_failed");
    assert!(
        subject
            .logged("request_id=bare")
            .contains("path=/return/a ")
    );
}

#[test]
fn limits_origins_and_the_log_change_on_a_connection_that_stays() {
    let mut subject = Subject::start(&[], "BHAV_LOG=error\nBHAV_LOGIN_ATTEMPTS_PER_MINUTE=0\n");
    let page = "https://dash.example";
    assert!(!subject.allows(page));
    assert_eq!(subject.login().status, 401);
    let body = "x".repeat(20_000);
    let long = |subject: &Subject| {
        let mut client = subject.program.client();
        client
            .send_json("POST", "/api/auth/login", "", &body)
            .status
    };
    assert_ne!(long(&subject), 413);
    subject.reload(
        "BHAV_ALLOWED_ORIGINS=https://dash.example\nBHAV_LOGIN_ATTEMPTS_PER_MINUTE=1\n\
         BHAV_REGISTRATION_ATTEMPTS_PER_MINUTE=1\nBHAV_HTTP_BODY_BYTES_MAX=16384\n\
         BHAV_MAX_CONNECTIONS=2\n",
    );
    let taken = ["a", "b"].map(|name| register(&mut subject, name).status);
    assert_eq!(taken, [201, 429]);
    assert!(subject.allows(page));
    assert_eq!((subject.login().status, subject.login().status), (401, 429));
    assert_eq!(long(&subject), 413);
    // The level is the default again, which logs refused requests.
    subject
        .client
        .request("GET", "/nowhere", "X-Request-Id: after-reload\r\n");
    subject.logged("request_id=after-reload");

    // Two connections are allowed: a third waits until one has closed.
    let second = until("the second place", || {
        let mut second = subject.program.client();
        (second.get(SNAPSHOT).status == 200).then_some(second)
    });
    let address = subject.program.address.clone();
    let third =
        bhav::rt::threads::spawn("third", move || Client::connect(&address).get(SNAPSHOT).status);
    let third = third.unwrap();
    for _ in 0..20 {
        assert_eq!(subject.client.get(SNAPSHOT).status, 200);
    }
    assert!(!third.is_finished());
    drop(second);
    assert_eq!(third.join().unwrap(), 200);

    subject.reload("BHAV_EDGE_THREADS=3\n");
    let said = subject.logged("takes a restart");
    assert!(said.contains("BHAV_EDGE_THREADS") && said.contains('3'), "{said}");
    assert!(!subject.allows(page), "what is not set any more is not in force any more");
}

#[test]
fn tokens_and_administrators_come_from_their_files_anew() {
    let files = [
        ("key", "simkeya"),
        ("token", "simtokena"),
        ("admin", "s3cr3t-admin"),
    ];
    let mut subject = Subject::start(&files, "");
    subject.until_market("the public provider", |market| market["source"] == "public");
    subject.reload("BROKERA_API_KEY_FILE=@key\nBROKERA_ACCESS_TOKEN_FILE=@token\n");
    subject.until_market("broker A", |market| market["source"] == "broker_a");
    let before = subject.client.get("/brokera/status").json();
    subject.reload(
        "BROKERA_API_KEY_FILE=@key\nBROKERA_ACCESS_TOKEN_FILE=@token\n\
         BROKERA_ADMIN_SECRET_FILE=@admin\n",
    );
    let activate = r#"{"request_token":"x"}"#;
    subject
        .client
        .send_json("POST", "/brokera/activate", "", activate)
        .expect_problem(403, "admin_secret_invalid");
    assert_eq!(subject.client.get("/brokera/status").json(), before, "an unchanged token stays");
    assert!(!subject.logged("").contains("s3cr3t"));
}

const HOLIDAY: &str = "[[holiday]]\ndate = \"2026-11-20\"\nname = \"Made up\"\n";

/// Hours of a week, whose auction is under way all day.
const AUCTION: &str = "[[regime]]\nfrom = \"2026-11-16\"\nknown_until = \"2026-11-21\"\n\
                       continuous = \"00:01-23:58\"\nclosing = \"00:02-23:59\"\n";

#[test]
fn a_calendar_and_a_universe_change_and_a_bad_one_changes_nothing() {
    let mut subject = Subject::start(&[("calendar", "")], "BHAV_CALENDAR_FILE=@calendar\n");
    subject.until_market("trading", |market| market["phase"] == "open");
    subject.write("calendar", HOLIDAY);
    subject.write("universe", "NSE:INFY\nNSE:ITC\n");
    subject.reload_well("BHAV_CALENDAR_FILE=@calendar\nBHAV_UNIVERSE_FILE=@universe\n");
    subject.until_market("the holiday", |market| market["phase"] == "holiday");
    subject.logged("symbol universe reloaded");
    // A whole regime with its auction, in the middle of the day; then hours that have an end.
    subject.write("calendar", AUCTION);
    subject.reload_well("BHAV_CALENDAR_FILE=@calendar\nBHAV_UNIVERSE_FILE=@universe\n");
    subject.until_market("the auction", |market| market["phase"] == "closing");
    subject.write("calendar", &AUCTION.replace("known_until", "# known_until"));
    subject.reload_well("BHAV_CALENDAR_FILE=@calendar\nBHAV_UNIVERSE_FILE=@universe\n");
    subject.until_health("hours without an end", |health| {
        let market = &health["market"];
        market["phase"] == "closing"
            && market["calendar_unknown"]
                .as_array()
                .is_some_and(sonic_rs::Array::is_empty)
    });
    subject.write("calendar", &AUCTION.replace("11-21", "11-19"));
    subject.reload_well("BHAV_CALENDAR_FILE=@calendar\nBHAV_UNIVERSE_FILE=@universe\n");
    subject.until_market("hours past their end", |market| {
        market["calendar_known"] == false && market["phase"] == "closing"
    });
    subject.logged("trading hours from 2026-11-20 on");
    subject.write("calendar", HOLIDAY);
    subject.reload_well("BHAV_CALENDAR_FILE=@calendar\nBHAV_UNIVERSE_FILE=@universe\n");
    subject.until_market("the holiday again", |market| market["phase"] == "holiday");

    // Line 6 has no valid date, so none of the new settings is used.
    subject.write("calendar", &format!("{HOLIDAY}\n[[holiday]]\ndate = \"2026-13-45\"\n"));
    subject.reload(
        "BHAV_CALENDAR_FILE=@calendar\nBHAV_UNIVERSE_FILE=@universe\n\
         BHAV_ALLOWED_ORIGINS=https://dash.example\n",
    );
    let said = subject.logged("reload refused");
    assert!(said.contains("calendar:6: "), "{said}");
    // Health reports it until the next good reload.
    let refused = subject.until_health("a refused reload", |health| health["reload"].is_object());
    let at = refused["reload"]["refused_ist"].as_str().unwrap();
    assert!(at.starts_with("2026-11-20T"), "{at}");
    assert_eq!(subject.scrape().value("bhav_reload_refused"), 1.0);
    assert_eq!(subject.market()["phase"], "holiday");
    assert!(!subject.allows("https://dash.example"));

    subject.reload("BHAV_CALENDAR_FILE=@nowhere\nBHAV_ALLOWED_ORIGINZ=x\nstray\n");
    let said = subject.logged("line 3: is no NAME=value");
    assert!(said.contains("reload refused"), "{said}");
    subject.reload("BHAV_CALENDAR_FILE=@nowhere\nBHAV_ALLOWED_ORIGINZ=x\n");
    let said = subject.logged("did you mean BHAV_ALLOWED_ORIGINS");
    assert!(said.contains("bhav.env line 2") && said.contains("nowhere"), "{said}");
    assert_eq!(subject.market()["phase"], "holiday");
    subject.reload("");
    subject.until_market("the built-in calendar", |market| market["phase"] == "open");
    let health = subject.until_health("no word of it", |health| health.get("reload").is_none());
    assert_eq!(health["market"]["calendar_until"].as_str().map(str::len), Some(10));
    let scrape = subject.scrape();
    assert_eq!(scrape.value("bhav_reload_refused"), 0.0);
    let ends_s = scrape.value("bhav_market_calendar_end_timestamp_seconds");
    // Midnight in India.
    assert_eq!((ends_s + 19_800.0) % 86_400.0, 0.0, "{ends_s}");
    subject.program.terminate();
    assert_eq!(subject.program.exit().code(), Some(0));
}

/// Broker B's list with `shares` rows, as the broker writes it.
fn master(shares: usize) -> String {
    let mut text = String::from("\"Token\", \"ShortName\", \"Series\"");
    for column in 3..61 {
        let name = match column {
            10 => "ISINCode",
            60 => "ExchangeCode",
            _ => "",
        };
        text.push_str(&format!(", \"{name}\""));
    }
    for share in 0..shares {
        text.push_str(&format!("\r\n\"{share}\",\"CODE{share}\",\"EQ\""));
        for column in 3..61 {
            let cell = if column == 60 {
                format!("SHARE{share}")
            } else {
                String::new()
            };
            text.push_str(&format!(",\"{cell}\""));
        }
    }
    text + "\r\n"
}

#[test]
fn a_security_master_that_was_cut_short_is_refused_and_a_longer_one_taken() {
    let lines = "BHAV_BROKERB_MASTER_FILE=@master\n";
    let mut subject = Subject::start(&[("master", &master(100))], lines);
    for shares in [90, 100, 120, 108] {
        subject.write("master", &master(shares));
        subject.reload_well(lines);
    }
    for (refusals, shares) in [97, 60, 1].into_iter().enumerate() {
        subject.write("master", &master(shares));
        subject.reload(lines);
        let said =
            format!("BHAV_BROKERB_MASTER_FILE has {shares} shares, and the one in force 108");
        assert!(subject.logged(&said).contains("reload refused"));
        let refused = subject.logged("reload refused").lines().count();
        assert_eq!(refused, refusals + 1);
    }
    subject.reload("");
    subject.write("master", &master(5));
    subject.reload(lines);
    assert_eq!(subject.logged("reload refused").lines().count(), 3, "none was in force");
}

#[test]
fn the_ticker_is_switched_on_limited_moved_and_switched_off() {
    let on = |subject: &Subject, more: &str| {
        let url = subject.scene.sim.broker_a_ticker_url();
        format!("{KEYS}BHAV_BROKERA_TICKER_URL={url}\n{more}")
    };
    let mut subject = Subject::start(&KEY_FILES, KEYS);
    let ticker = |health: &Value| health["feeds"]["broker_a"]["ticker"].clone();
    subject.until_health("prices", |health| health["feeds"]["broker_a"]["state"] == "ok");
    assert!(ticker(&subject.client.get("/api/health").json()).is_null(), "another broker's");

    let lines = on(&subject, "");
    subject.reload_well(&lines);
    let health = subject.until_health("ticks", |health| ticker(health)["live"] == true);
    let all = ticker(&health)["subscribed"].as_u64().unwrap();
    for symbol in ["NSE:INFY", "NSE:TCS"] {
        assert_eq!(subject.client.get(&format!("{PRICES}{symbol}")).status, 200);
    }
    subject.until_health("shares too", |health| {
        ticker(health)["subscribed"].as_u64().unwrap() >= all + 2
    });

    // Another URL: the ticker connects there, and reports why that fails.
    subject.reload_well(&format!("{KEYS}BHAV_BROKERA_TICKER_URL=ws://127.0.0.1:1/a\n"));
    subject.until_health("a move", |health| ticker(health)["failure"] == "unreachable");
    assert_eq!(subject.scene.stats()["ticker_connections"].as_i64(), Some(0));
    subject.until_market("fresh prices", |market| market["stale"] == false);
    subject.reload_well(&lines);
    subject.until_health("ticks again", |health| ticker(health)["live"] == true);

    subject.reload(&on(&subject, "BHAV_BROKERA_TICKER_SYMBOLS_MAX=5000\n"));
    assert!(
        subject
            .logged("reload refused")
            .contains("BHAV_BROKERA_TICKER_SYMBOLS_MAX")
    );
    let off = on(&subject, "BHAV_BROKERA_TICKER=false\n");
    subject.reload(&off);
    subject.until_health("no ticker", |health| ticker(health).is_null());
    until("no connection", || subject.scene.stats()["ticker_connections"] == 0);
    subject.until_market("prices by calls", |market| market["stale"] == false);
}

const OLD_LOT: &str = "symbol,isin,trade_date,exchange,segment,series,trade_type,auction,quantity,\
    price,trade_id,order_id,order_execution_time\n\
    INFY,INE009A01021,2016-03-03,NSE,EQ,EQ,buy,false,10,500,1,1,2016-03-03T10:00:00\n\
    INFY,INE009A01021,2025-08-01,NSE,EQ,EQ,sell,false,10,1500,2,2,2025-08-01T10:00:00\n";

/// The only part's value of 31 January 2018, its cost, the reasons that cut it, and the tag.
fn part(client: &mut Client, auth: &str) -> (String, String, String, String) {
    let answer = client
        .request("GET", "/api/trades/gains?fy=2025-26", auth)
        .with_status(200);
    let tag = answer.header("etag").unwrap().to_owned();
    let gains = answer.json();
    let lot = &gains["sales"][0]["lots"][0];
    let written = |name: &str| sonic_rs::to_string(&lot[name]).unwrap();
    (written("fmv"), written("cost_considered"), written("reasons"), tag)
}

#[test]
fn prices_of_2018_are_taken_by_a_reload_and_no_older_gain_is_shown() {
    let mut subject = Subject::start(&KEY_FILES, KEYS);
    let answer = subject
        .client
        .send_json("POST", "/api/auth/register", "", LOGIN);
    let auth = bearer(&answer.with_status(201).field("access_token"));
    let client = &mut subject.client;
    let sent = client.send_file("/api/trades/imports?account=x", &auth, OLD_LOT.as_bytes());
    let import = sent.with_status(201).json()["id"].as_i64().unwrap();
    let confirm = format!("/api/trades/imports/{import}/confirm");
    client.request("POST", &confirm, &auth).with_status(200);
    let (fmv, _, reasons, before) = part(client, &auth);
    assert_eq!(fmv, "null");
    assert!(reasons.contains("fmv_missing"), "{reasons}");

    subject.write("fmv.csv", "isin,price\nINE009A01021,1180.50\n");
    let lines = format!("{KEYS}BHAV_FMV_FILE=@fmv.csv\n");
    subject.reload_well(&lines);
    let (fmv, considered, reasons, with_list) = part(&mut subject.client, &auth);
    assert_eq!((fmv.as_str(), considered.as_str()), ("11805", "11805"));
    assert!(!reasons.contains("fmv_missing"), "{reasons}");
    assert_ne!(with_list, before);
    // The path stays, and what the file says changes.
    subject.write("fmv.csv", "isin,price\nINE009A01021,1000\n");
    subject.reload_well(&lines);
    assert_eq!(part(&mut subject.client, &auth).0, "10000");
    subject.write("fmv.csv", "isin,price\nINE009A01021,1180.50\n");
    subject.reload_well(&lines);
    assert_eq!(
        part(&mut subject.client, &auth).3,
        with_list,
        "the same prices, the same document"
    );
    // A bad file is told of, and the prices before it stay.
    subject.write("fmv.csv", "isin,price\nINE009A01021,much\n");
    subject.reload(&lines);
    assert!(subject.logged("reload refused").contains("fmv.csv:2:"));
    assert_eq!(part(&mut subject.client, &auth).0, "11805");
    let said = r#"{"kind":"fmv","isin":"INE009A01021","price":1300}"#;
    let target = "/api/trades/corrections/of-2018";
    subject
        .client
        .send_json("PUT", target, &auth, said)
        .with_status(200);
    assert_eq!(part(&mut subject.client, &auth).0, "13000", "what the person says comes first");
}
