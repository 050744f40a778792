//! `bhav demo --public`: strangers read ready-made accounts, change nothing, and find everything
//! anew after each period.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use crate::support::{
    Answer, Client, Program, Ran, SNAPSHOT, TRADING, bearer, bhav, few_candles, run, say,
    state_flag, until, without_admin,
};
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

/// What docs/operating.md says of a public demo's own memory. Thirty days had 39 MiB at most.
const OWN_MEMORY_MIB_MAX: u64 = 52;
/// Most that a day may add to the one before, once two days have followed each other. Thirty days
/// had 1.3 MiB at most. Since each day is given a past, most of a day depends on where its making
/// meets that of the day before: eight days had between 30 and 44 MiB, up and down.
const GROWTH_KIB_MAX: u64 = 10_240;
/// Days that are begun.
const DAYS: usize = 4;

const LOGIN: &str = r#"{"email":"asha@example.com","password":"nine green parrots"}"#;

fn started(state: &Path, more: &[&str]) -> Program {
    let mut command = without_admin(&["demo", "--public", "--listen=127.0.0.1:0", &few_candles()]);
    command
        .arg(state_flag(state))
        .args(more)
        .stderr(Stdio::null());
    Program::of(&mut command)
}

fn logged_in(client: &mut Client) -> String {
    let answer = client
        .send_json("POST", "/api/auth/login", "", LOGIN)
        .with_status(200);
    bearer(&answer.field("access_token"))
}

#[track_caller]
fn expect_refused(answer: &Answer, allow: &str) {
    answer.expect_problem(405, "method_not_allowed");
    assert!(answer.text().contains("public demo"), "{}", answer.text());
    assert_eq!(answer.header("allow"), Some(allow));
}

fn expect_no_write_is_taken(client: &mut Client, headers: &str) {
    let read = "GET, HEAD, OPTIONS";
    for (method, target, allow, body) in [
        ("POST", "/api/auth/register", "OPTIONS", LOGIN),
        ("POST", "/api/auth/password", "OPTIONS", "{}"),
        ("DELETE", "/api/auth/account", "OPTIONS", "{}"),
        ("POST", "/api/auth/logout", "OPTIONS, POST", r#"{"everywhere":true}"#),
        ("POST", "/api/portfolio/sync", "OPTIONS", "{}"),
        ("POST", "/api/portfolio/brokerb-sync", "OPTIONS", "{}"),
        ("DELETE", "/api/portfolio/data", "OPTIONS", "{}"),
        ("POST", "/api/journal", read, "{}"),
        ("PUT", "/api/journal/1", read, "{}"),
        ("DELETE", "/api/journal/1", read, "{}"),
        ("PUT", "/api/watchlists", read, "{}"),
        ("POST", "/brokera/activate", "OPTIONS", "{}"),
        ("POST", "/brokerb/activate", "OPTIONS", "{}"),
    ] {
        let answer = client.send_json(method, target, headers, body);
        expect_refused(&answer, allow);
    }
}

#[test]
fn strangers_read_everything_and_change_nothing() {
    let state = tempfile::tempdir().unwrap();
    let mut program = started(state.path(), &[]);
    for part in [
        "asha@example.com, ravi@example.com",
        "nine green parrots",
        "every 3600 s",
    ] {
        assert!(program.printed.contains(part), "{part} is not in {}", program.printed);
    }
    let mut client = program.client();
    let page = client.get("/");
    for part in [
        "<div class=\"banner notice\" id=\"notice\"><p>Public demo: ",
        "Asha",
        "Ravi",
    ] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    assert!(page.text().contains("every 60 min"), "{}", page.text());
    let json = until("a snapshot", || {
        let answer = client.get(SNAPSHOT);
        (answer.status == 200).then(|| answer.json())
    });
    assert!(json["market"]["simulated"] == true);

    let asha = logged_in(&mut client);
    let holdings = client
        .request("GET", "/api/portfolio/holdings", &asha)
        .json();
    assert!(holdings["holdings"].as_array().unwrap().len() > 10, "{holdings}");
    let journal = client.request("GET", "/api/journal", &asha).json();
    assert_eq!(journal["entries"].as_array().unwrap().len(), 40, "{journal}");
    assert!(journal.to_string().matches("Made-up entry").count() == 40);
    let lists = client.request("GET", "/api/watchlists", &asha).json();
    assert_eq!(lists["watchlists"].as_array().unwrap().len(), 3, "{lists}");
    expect_past(
        &client
            .request("GET", "/api/portfolio/pnl?days=365", &asha)
            .json(),
    );
    expect_trades(&mut client, &asha);
    assert_eq!(client.request("GET", "/api/portfolio/export", &asha).status, 200);
    let session = client.get("/api/auth/session").json();
    assert_eq!(session["registration"].as_str(), Some("closed"));

    expect_no_write_is_taken(&mut client, &asha);
    let after = client.request("GET", "/api/journal", &asha).json();
    assert_eq!(after, journal);
    // A login of one's own may be ended, and no other one ends with it.
    let other = logged_in(&mut client);
    assert_eq!(client.request("POST", "/api/auth/logout", &other).status, 200);
    assert_eq!(client.request("GET", "/api/journal", &other).status, 401);
    assert_eq!(client.request("GET", "/api/journal", &asha).status, 200);

    // A second one on the same folder would remove what the first one serves.
    let ran = run(&mut public(&[&state_flag(state.path())])).with_code(69);
    assert!(ran.err.contains("another public demo uses"), "{}", ran.err);
    program.ends();
    assert_eq!(days(state.path()), Vec::<String>::new(), "nothing is left");
}

/// A year of points: broker B came in between, and one point is in doubt.
fn expect_past(pnl: &Value) {
    let points = pnl["trend"].as_array().unwrap();
    assert!(points.len() >= 245, "{}", points.len());
    let brokers = |at: usize| points[at]["brokers"].as_array().unwrap().len();
    assert_eq!((brokers(0), brokers(points.len() - 1)), (1, 2));
    let in_doubt: Vec<_> = points
        .iter()
        .filter(|point| point["suspect"] == true)
        .collect();
    assert_eq!(in_doubt.len(), 1, "{pnl}");
    let values = points
        .iter()
        .filter_map(|point| point["total_current_value"].as_f64());
    assert_eq!(values.filter(|value| *value > 0.0).count(), points.len());
}

/// Three years of trades: at each broker most of it is proved, and each year has proved sales.
fn expect_trades(client: &mut Client, asha: &str) -> Value {
    let mut get = |target: &str| client.request("GET", target, asha).with_status(200).json();
    let proof = get("/api/trades/reconciliation");
    let rows = proof["rows"].as_array().unwrap();
    for account in ["a", "b"] {
        let of_account = rows.iter().filter(|row| row["account"] == account);
        let proved = of_account.filter(|row| row["proved"] == true && row["simulated"] == true);
        assert!(proved.count() >= 6, "{proof}");
    }
    let all = get("/api/trades/gains");
    let years: Vec<&str> = all["years"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|year| year.as_str())
        .collect();
    let proved_in = |year: &&&str| {
        let gains = get(&format!("/api/trades/gains?fy={year}"));
        let sales = gains["sales"].as_array().unwrap();
        sales
            .iter()
            .any(|sale| sale["proved"] == true && sale["simulated"] == true)
    };
    assert!(years.iter().filter(proved_in).count() >= 3, "{years:?}");
    proof
}

/// What is not proved at broker A: a bonus, shares from elsewhere, a year that is in another file,
/// and a split, whose shares of before and after are a row each.
fn expect_causes(proof: &Value) {
    let rows = proof["rows"].as_array().unwrap().iter();
    let unproved = rows.filter(|row| row["account"] == "a" && row["proved"] == false);
    let mut causes: Vec<&str> = unproved.flat_map(|row| row["cause"].as_str()).collect();
    causes.sort_unstable();
    let expected = ["bonus", "older_file", "split", "split", "transfer_in"];
    assert_eq!(causes, expected, "{proof}");
}

/// The lists of twelve weeks, judged, are there some seconds after a start.
#[test]
fn a_demo_has_a_past_at_once() {
    let state = tempfile::tempdir().unwrap();
    let now = format!("--now={TRADING}");
    let mut command = without_admin(&["demo", "--listen=127.0.0.1:0", &few_candles(), &now]);
    let mut program = Program::of(command.arg(state_flag(state.path())).stderr(Stdio::null()));
    let mut client = program.client();
    let list = until("signals", || {
        let list = client.get("/api/signals").json();
        (list["state"] == "ready").then_some(list)
    });
    let record = client.get("/api/signals/record").json();
    assert_eq!(record["dates_published"].as_u64(), Some(60), "{record}");
    assert!(record["judged"].as_u64() > record["pending"].as_u64(), "{record}");
    assert_eq!(record["simulated"], true);
    // The last date's list is the one that an evening would have published.
    assert!(
        list["signals"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["as_of"] == list["as_of"])
    );
    let asha = until("asha", || {
        let answer = client.send_json("POST", "/api/auth/login", "", LOGIN);
        (answer.status == 200).then(|| bearer(&answer.field("access_token")))
    });
    let pnl = until("her past", || {
        let pnl = client
            .request("GET", "/api/portfolio/pnl?days=365", &asha)
            .json();
        let points = pnl["trend"].as_array().unwrap().len();
        let brokers = pnl["summary"]["synced"]["b"].as_str().is_some();
        (points > 200 && brokers).then_some(pnl)
    });
    expect_past(&pnl);
    until("her trades", || {
        let imports = client.request("GET", "/api/trades/imports", &asha).json();
        let live = imports["imports"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|import| {
                import["state"] == "live"
                    && !import["format"].as_str().unwrap().starts_with("sync_")
            });
        (live.count() == 2).then_some(())
    });
    expect_causes(&expect_trades(&mut client, &asha));
    program.ends();
}

#[test]
fn guesses_from_ever_new_addresses_keep_no_visitor_out() {
    let state = tempfile::tempdir().unwrap();
    let program = started(state.path(), &["--trusted-proxies=127.0.0.1"]);
    let mut client = program.client();
    let mut login = |from: u32, body: &str| {
        let from = std::net::Ipv4Addr::from(from);
        let headers = format!("X-Forwarded-For: {from}\r\n");
        client
            .send_json("POST", "/api/auth/login", &headers, body)
            .status
    };
    let guess = r#"{"email":"asha@example.com","password":"wrong horse battery"}"#;
    for round in 1..=9 {
        let guesses = (0..100).map(|number| login((round << 24) + 1_000 + number, guess));
        assert_eq!(guesses.filter(|status| *status == 401).count(), 100, "round {round}");
        assert_eq!(login((round << 24) + 1, LOGIN), 200, "a visitor of round {round}");
    }
    // One address has a limit of its own.
    let from_one = (0..100).map(|_| login(1 << 28, guess));
    assert!(from_one.filter(|status| *status == 429).count() >= 30);
}

#[test]
fn nothing_that_a_visitor_sees_names_the_simulator() {
    let state = tempfile::tempdir().unwrap();
    let program = started(state.path(), &[]);
    let mut client = program.client();
    let asha = logged_in(&mut client);
    let session = client.get("/api/auth/session").json();
    assert!(session["login_pages"].is_null(), "{session}");
    for path in [
        "/",
        "/api/auth/session",
        "/api/health",
        "/api/index/snapshot",
        "/brokera/status",
        "/brokerb/status",
        "/api/portfolio/holdings",
        "/api/portfolio/export",
        "/api/signals",
        "/api/openapi.json",
    ] {
        let answer = client.request("GET", path, &asha);
        let all = format!("{}{}", answer.head(), answer.text());
        for place in ["127.0.0.", "localhost:", "sim/control"] {
            let lines = all.lines().filter(|line| line.contains(place));
            let lines: Vec<&str> = lines
                .filter(|line| !line.contains(&program.address))
                .collect();
            assert!(lines.is_empty() || path == "/api/openapi.json", "{path}: {lines:?}");
        }
    }
}

/// The folders of days.
fn days(state: &Path) -> Vec<String> {
    let entries = fs::read_dir(state.join("demo-public"))
        .unwrap()
        .map(Result::unwrap);
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name != "lock").collect()
}

#[test]
fn each_period_begins_anew_at_the_same_address() {
    let state = tempfile::tempdir().unwrap();
    let mut program = started(state.path(), &["--reset-s=5"]);
    let asha = logged_in(&mut program.client());
    let first = days(state.path());
    assert_eq!(first, ["even"]);
    // A moment without a listener may pass.
    let next = until("the next day", || {
        let mut client = Client::try_connect(&program.address).ok()?;
        let request = format!("GET /api/journal HTTP/1.1\r\nHost: localhost\r\n{asha}\r\n");
        client.try_write(request.as_bytes()).ok()?;
        let answer = client.try_answer().ok()?;
        (answer.status == 401).then_some(client)
    });
    let mut client = next;
    let again = logged_in(&mut client);
    let holdings = client.request("GET", "/api/portfolio/holdings", &again);
    assert!(holdings.json()["holdings"].as_array().unwrap().len() > 10);
    until("the day of before to be gone", || (days(state.path()) != first).then_some(()));
    program.ends();
}

/// Memory of a process that no other one shares and no file backs, in KiB.
fn own_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// `BHAV_DEMO_DAYS` plays another number of days, and prints the memory of each.
#[test]
fn memory_stays_within_its_bound_from_day_to_day() {
    let asked = std::env::var("BHAV_DEMO_DAYS").ok();
    let days = asked.as_ref().map_or(DAYS, |days| days.parse().unwrap());
    let state = tempfile::tempdir().unwrap();
    let log = state.path().join("log");
    let mut command = without_admin(&["demo", "--public", "--listen=127.0.0.1:0", "--reset-s=5"]);
    command
        .arg(state_flag(state.path()))
        .stderr(File::create(&log).unwrap());
    let mut program = Program::of(&mut command);
    let mut measured = Vec::new();
    for day in 2..=days {
        let begun = format!("day {day}");
        let mut most_kib = 0;
        until(&begun, || {
            most_kib = own_kib(program.child.id()).max(most_kib);
            let log = fs::read_to_string(&log).unwrap();
            log.matches("a day of the public demo begins").count() >= day
        });
        if let [_, .., before_kib] = measured[..] {
            assert!(most_kib <= before_kib + GROWTH_KIB_MAX, "{measured:?}, then {most_kib}");
        }
        measured.push(most_kib);
        assert!(most_kib <= OWN_MEMORY_MIB_MAX * 1024, "KiB of each day: {measured:?}");
    }
    program.ends();
    let page = include_str!("../../docs/operating.md");
    assert!(page.contains(&format!("within {OWN_MEMORY_MIB_MAX} MiB over days")));
    if asked.is_some() {
        say(&format!("own memory in KiB, at most, of each day: {measured:?}\n"));
    }
}

fn public(more: &[&str]) -> std::process::Command {
    let mut command = without_admin(&["demo", "--public", "--listen=127.0.0.1:0"]);
    command.args(more);
    command
}

#[test]
fn what_would_show_more_than_the_demo_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let state = state_flag(state.path());
    let refused = |command: &mut std::process::Command, why: &str| {
        let Ran { code, err, .. } = run(command);
        assert_eq!(code, Some(64), "{err}");
        assert!(err.contains(why), "{why} is not in {err}");
    };
    refused(public(&[&state]).arg("--sim-listen=0.0.0.0:0"), "listens on loopback");
    refused(public(&[&state]).env("LISTEN_FDS", "1"), "takes no socket of systemd");
    refused(&mut bhav(&["demo", "--reset-s=60", &state]), "--public");
}
