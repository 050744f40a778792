//! Each word of the service and its trouble; the screen's size whatever is wrong.

use super::super::screen::{COLUMNS_MAX, Colours, LINES_MAX, screen};
use super::*;
use crate::views::values::Mark;
use jiff::SignedDuration;

use crate::base::{Broker, ByBroker};

const OK: &str = r#"{"status":"ok","version":"0.1.0","uptime_s":7500,"database":"ok",
"store":{"writes":3,"refused":0},"cache_l1":{"size":27,"hits":98,"misses":2},
"cache_l2":{"backend":"sqlite","errors":0},"warmers":{"index":"ok","quotes":"ok",
"instruments":"ok","persist":"ok","close":"ok",
"signals":"ok"},"feeds":{"broker_a":{"state":"ok","age_ms":340},
"public":{"state":"standby"}},"market":{"phase":"open","calendar_known":true,
"as_of_ist":"2026-11-20T11:00:00+05:30"},"lanes":[{"name":"crypto","depth":0}]}"#;

fn now() -> Timestamp {
    "2026-11-20T11:00:00+05:30".parse().unwrap()
}

fn valid(expires_at: &str) -> SessionStatus {
    let expires_at = Some(Instant(expires_at.parse().unwrap()));
    SessionStatus {
        initialized: true,
        valid: true,
        set_at: None,
        expires_at,
    }
}

fn report(health: &str) -> ServiceReport {
    ServiceReport {
        health: sonic_rs::from_str(health).unwrap(),
        tokens: ByBroker([valid("2026-11-21T06:00:00+05:30"), SessionStatus::default()]),
        service_now: Some(now()),
        here_now: now(),
    }
}

fn facts(report: ServiceReport) -> Facts {
    let mut config = Config::default();
    config.broker_a.api_key = Some("keya".into());
    facts_with(report, &config)
}

fn facts_with(report: ServiceReport, config: &Config) -> Facts {
    Facts::of("http://h".into(), report, config, &MarketCalendar::load(None).unwrap())
}

fn names(facts: &Facts) -> Vec<&str> {
    facts
        .troubles
        .iter()
        .map(|trouble| &*trouble.name)
        .collect()
}

#[test]
fn a_good_service_has_no_troubles() {
    let facts = facts(report(OK));
    assert_eq!((facts.status.as_str(), names(&facts)), ("ok", vec![]));
    let expected = "\
bhav is ok, version 0.1.0, up 2 h 5 min (http://h)
market    open; closing at 2026-11-20 15:15; prices of 2026-11-20 11:00
broker A  ok; asked 0.3 s ago
public    standby
token a   valid; 19 h 0 min left, until 2026-11-21 06:00 IST
token b   none
store     ok; 3 writes, 0 refused
warmers   ok: index, quotes, instruments, persist, close, signals
caches    27 quotes, 98 % hits; 0 users, no hits; level 2 sqlite, 0 errors
";
    let text = screen(&facts, Colours::Off);
    assert_eq!(text, expected);
    assert!(screen(&facts, Colours::On).starts_with("\x1b[1;32mbhav is ok"));
}

#[test]
fn a_node_of_several_says_who_leads_and_what_it_hears() {
    let node = |more: &str| {
        let health = OK.replacen('{', &format!("{{\"node\":\"delhi-1\",{more},"), 1);
        screen(&facts(report(&health)), Colours::Off)
    };
    let text = node(r#""role":"leader","epoch":3,"relay":{"state":"following","age_ms":450}"#);
    let row = "node      delhi-1; leads, epoch 3; relay following, 0.4 s ago\n";
    assert!(text.contains(row) && !text.contains("another node"), "{text}");
    let text = node(
        r#""role":"follower","epoch":3,"leader":"delhi-2",
        "relay":{"state":"silent","age_ms":61000,"gaps":2,
        "tokens":{"broker_a":"other_node","broker_b":"none"}}"#,
    );
    let row = "node      delhi-1; follows delhi-2, epoch 3; relay silent, 61.0 s ago, 2 gaps\n";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("until 2026-11-21 06:00 IST; from another node\n"), "{text}");
    let text = node(r#""role":"follower","relay":{"state":"off","gaps":0}"#);
    assert!(
        text.contains("node      delhi-1; follower; relay off: no BHAV_CACHE_URL\n"),
        "{text}"
    );
}

fn degraded() -> String {
    OK.replace("\"status\":\"ok\"", "\"status\":\"degraded\"")
}

fn with_broker_a(state: &str) -> String {
    let feed = format!("{{\"state\":\"{state}\"}}");
    degraded().replace("{\"state\":\"ok\",\"age_ms\":340}", &feed)
}

fn expect_trouble(health: &str, status: &str, expected: &str) {
    let facts = facts(report(health));
    assert_eq!((facts.status.as_str(), names(&facts)), (status, vec![expected]), "{health}");
}

#[test]
fn each_word_of_health_has_its_trouble() {
    let database = |state: &str| {
        degraded().replace("\"database\":\"ok\"", &format!("\"database\":\"{state}\""))
    };
    let in_place_of = |good: &str, bad: &str| degraded().replace(good, bad);
    for (health, expected) in [
        // As the default's token is valid, the feed has not noticed yet.
        (with_broker_a("no_token"), "broker_a_new_token"),
        (with_broker_a("token_dead"), "broker_a_new_token"),
        (with_broker_a("no_permission"), "broker_a_no_market_data"),
        (with_broker_a("open"), "broker_a_fails"),
        (with_broker_a("hanging"), "broker_a_fails"),
        (with_broker_a("mute"), "broker_a_mute"),
        (database("full"), "store_full"),
        (database("read_only"), "store_read_only"),
        (database("corrupt"), "store_corrupt"),
        (database("busy"), "store_busy"),
        (database("stuck"), "store_stuck"),
        (database("unavailable"), "store_unavailable"),
        (in_place_of("\"sqlite\"", "\"none\""), "second_level_off"),
        (in_place_of("\"persist\":\"ok\"", "\"persist\":\"failing\""), "persist_fails"),
        (in_place_of("\"close\":\"ok\"", "\"close\":\"failing\""), "close_fails"),
        (in_place_of("\"index\":\"ok\"", "\"index\":\"stale\""), "snapshot_old"),
        (
            in_place_of("\"calendar_known\":true", "\"calendar_known\":false"),
            "calendar_unknown",
        ),
        (degraded(), "unexplained"),
    ] {
        expect_trouble(&health, "degraded", expected);
    }
    for (state, expected) in [
        ("no_token", "broker_a_token_missing"),
        ("token_dead", "broker_a_token_dead"),
    ] {
        let mut report = report(&with_broker_a(state));
        report.tokens[Broker::A] = SessionStatus {
            initialized: state == "token_dead",
            ..SessionStatus::default()
        };
        assert_eq!(names(&facts(report)), [expected]);
    }
}

#[test]
fn some_words_of_health_are_notes() {
    let in_place_of = |good: &str, bad: &str| degraded().replace(good, bad);
    for (health, expected) in [
        (with_broker_a("off"), "broker_a_off"),
        (
            in_place_of("{\"state\":\"standby\"}", "{\"state\":\"failing\"}"),
            "public_fails",
        ),
        (
            in_place_of("\"instruments\":\"ok\"", "\"instruments\":\"failing\""),
            "instruments_fail",
        ),
        (in_place_of("\"depth\":0", "\"panicked\":1"), "lane_panicked"),
        (in_place_of("\"depth\":0", "\"refused\":1"), "lane_refused"),
    ] {
        expect_trouble(&health.replace("degraded", "ok"), "ok", expected);
    }
}

#[test]
fn a_rate_limit_is_known_by_the_state_and_not_by_the_text() {
    let said = "failing\",\"failure\":\"broker A refused for too many requests";
    for (feed, state, expected) in [
        ("{\"state\":\"ok\",\"age_ms\":340}", said, "broker_a_fails"),
        ("{\"state\":\"ok\",\"age_ms\":340}", "rate_limited", "provider_rate_limited"),
        ("{\"state\":\"standby\"}", "rate_limited", "provider_rate_limited"),
    ] {
        let health = OK.replace(feed, &format!("{{\"state\":\"{state}\"}}"));
        assert_eq!(names(&facts(report(&health))), [expected], "{health}");
    }
}

#[test]
fn servers_that_refuse_degrade_and_connections_that_are_open_are_notes() {
    for (more, status, expected) in [
        (r#""shared_server":{"refused":["x"]}"#, "degraded", "shared_server_refuses"),
        (
            r#""shared_server":{"refused":[],"foreign":["leader"]}"#,
            "ok",
            "shared_server_written_by_others",
        ),
        (r#""exposed":[{"setting":"A","reason":"clear_text"}]"#, "ok", "clear_text"),
        (
            r#""exposed":[{"setting":"A","reason":"no_password"}]"#,
            "ok",
            "shared_server_open",
        ),
    ] {
        let facts = facts(report(&OK.replacen('{', &format!("{{{more},"), 1)));
        assert_eq!((facts.status.as_str(), names(&facts)), (status, vec![expected]));
    }
}

#[test]
fn the_feed_says_how_its_prices_come() {
    for (ticker, expected) in [
        (r#"{"state":"speaking","live":true}"#, "live by ticker"),
        (r#"{"state":"speaking","live":false}"#, "by calls, ticker: speaking"),
        (r#"{"state":"subscribing","live":false}"#, "by calls, ticker: subscribing"),
        (
            r#"{"state":"refused","live":false,"failure":"refused"}"#,
            "by calls, ticker: refused (403)",
        ),
        (
            r#"{"state":"waiting","live":false,"failure":"silent"}"#,
            "by calls, ticker: waiting (silent)",
        ),
        (r#"{"state":"off","live":false}"#, "ticker: off"),
    ] {
        let health =
            OK.replace("\"age_ms\":340}", &format!("\"age_ms\":340,\"ticker\":{ticker}}}"));
        let facts = facts(report(&health));
        assert_eq!((facts.status.as_str(), names(&facts)), ("ok", vec![]), "{ticker}");
        let line = format!("\nbroker A  ok; asked 0.3 s ago; {expected}\n");
        let text = screen(&facts, Colours::Off);
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

#[test]
fn two_dead_feeds_are_one_story_told_first() {
    let health = OK
        .replace("\"status\":\"ok\"", "\"status\":\"down\"")
        .replace("{\"state\":\"ok\",\"age_ms\":340}", "{\"state\":\"token_dead\"}")
        .replace("{\"state\":\"standby\"}", "{\"state\":\"failing\",\"failure\":\"no route\"}");
    let mut report = report(&health);
    report.tokens[Broker::A].valid = false;
    let facts = facts(report);
    assert_eq!(facts.status.as_str(), "down");
    assert_eq!(names(&facts), ["feeds_dead", "broker_a_token_dead", "public_fails"]);
    let link = "https://kite.zerodha.com/connect/login?v=3&api_key=keya";
    assert_eq!(facts.troubles[1].login_url.as_deref(), Some(link));
    let text = screen(&facts, Colours::Off);
    assert!(text.contains(link) && text.contains("bhav token a"), "{text}");
}

#[test]
fn tokens_near_their_end_and_sessions_are_notes() {
    let mut ending = report(OK);
    ending.tokens[Broker::A] = valid("2026-11-20T11:59:59+05:30");
    ending.tokens[Broker::B] = valid("2026-11-20T12:00:00+05:30");
    assert_eq!(names(&facts(ending)), ["broker_a_token_ending"]);
    let mut ended = report(OK);
    ended.tokens[Broker::B] = SessionStatus {
        initialized: true,
        ..SessionStatus::default()
    };
    let facts = facts(ended);
    assert_eq!((facts.status.as_str(), names(&facts)), ("ok", vec!["broker_b_session_ended"]));
    let link = facts.troubles[0].login_url.as_deref().unwrap();
    assert!(link.ends_with("api_key=YOUR_API_KEY"), "{link}");
    let mut just_died = report(OK);
    just_died.tokens[Broker::A].valid = false;
    assert_eq!(names(&self::facts(just_died)), ["broker_a_token_dead"]);
}

#[test]
fn a_clock_that_is_off_is_told_unless_it_was_set() {
    for (off_s, told) in [
        (0, false),
        (-3, false),
        (3, false),
        (-4, true),
        (7_200, true),
    ] {
        let mut report = report(OK);
        report.here_now = now() - SignedDuration::from_secs(off_s);
        let facts = facts(report);
        assert_eq!(names(&facts), if told { vec!["clock_off"] } else { vec![] }, "{off_s}");
        assert_eq!(facts.status.as_str() == "degraded", told);
    }
    let mut report = report(OK);
    report.here_now = now() - SignedDuration::from_hours(2);
    report.health.clock.set = Mark(true);
    let facts = facts(report);
    assert_eq!((facts.status.as_str(), names(&facts)), ("ok", vec!["clock_set"]));
    assert!(facts.troubles[0].cause.contains("+2 h 0 min"), "{}", facts.troubles[0].cause);
}

#[test]
fn whatever_is_wrong_fits_on_one_screen() {
    let health = OK
        .replace("\"status\":\"ok\"", "\"status\":\"down\"")
        .replace(
            "{\"state\":\"ok\",\"age_ms\":340}",
            "{\"state\":\"failing\",\"age_ms\":99999999}",
        )
        .replace(
            "{\"state\":\"standby\"}",
            &format!("{{\"state\":\"failing\",\"failure\":\"{} \\u001b[2J\"}}", "long ".repeat(99)),
        )
        .replace("\"ok\"", "\"failing\"")
        .replace("\"sqlite\"", "\"none\"")
        .replace("\"calendar_known\":true", "\"calendar_known\":false")
        .replace("\"depth\":0", "\"refused\":7")
        .replace("\"lanes\"", "\"backup\":{\"failed\":true},\"lanes\"");
    let mut report = report(&health);
    report.tokens[Broker::B].initialized = true;
    report.here_now = Timestamp::UNIX_EPOCH;
    let facts = facts(report);
    assert!(facts.troubles.len() >= 8, "{:?}", names(&facts));
    let text = screen(&facts, Colours::Off);
    assert!(text.lines().count() <= LINES_MAX, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "{text}");
    assert!(text.contains("more: bhav status --json"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_wrong_clock_is_named_in_the_place_of_what_follows_from_it() {
    let mute = OK
        .replace(r#""state":"ok""#, r#""state":"mute""#)
        .replace(r#""standby""#, r#""mute""#)
        .replace(r#""index":"ok""#, r#""index":"stale""#)
        .replace(r#""status":"ok""#, r#""status":"degraded""#);
    let wrong = |ahead_ms: i64| {
        let clock = format!(r#""clock":{{"ahead_of_exchange_ms":{ahead_ms}}},"lanes""#);
        facts(report(&mute.replace(r#""lanes""#, &clock)))
    };
    for (ahead_ms, words) in [
        (3_600_000, "1 h 0 min ahead of"),
        (-3_600_000, "1 h 0 min behind"),
    ] {
        let facts = wrong(ahead_ms);
        assert_eq!(names(&facts), ["exchange_time_apart", "snapshot_old"]);
        assert!(facts.troubles[0].cause.contains(words), "{}", facts.troubles[0].cause);
    }
    assert!(names(&facts(report(&mute))).contains(&"feeds_dead"));
}

#[test]
fn signals_that_fail_and_a_log_that_is_lost_are_named() {
    let failing = OK
        .replace(r#""signals":"ok""#, r#""signals":"failing""#)
        .replace(r#""status":"ok""#, r#""status":"degraded""#)
        .replace(r#""lanes""#, r#""log":{"lines_dropped":0,"writes_failed":5},"lanes""#);
    let facts = facts(report(&failing));
    assert_eq!(names(&facts), ["signals_fail", "log_lost"]);
    assert_eq!(
        (facts.status.as_str(), facts.troubles[1].severity),
        ("degraded", Severity::Note)
    );
}

#[test]
fn a_calendar_that_ends_soon_is_a_note() {
    for (unknown, count) in [
        (r#"[]"#, 0),
        (r#"["trading holidays from 2027-01-01 on"]"#, 1),
        (r#"["trading hours from 2026-12-07 on","hours of Drill on 2026-12-20"]"#, 2),
    ] {
        let health = OK.replace(
            r#""calendar_known":true"#,
            &format!(r#""calendar_known":true,"calendar_unknown":{unknown}"#),
        );
        let facts = facts(report(&health));
        assert_eq!(names(&facts), vec!["calendar_ends"; count], "{unknown}");
        assert_eq!(facts.status.as_str(), "ok");
    }
}

#[test]
fn the_last_backup_is_shown_and_told_of_where_it_is_old_or_failed() {
    let with =
        |backup: &str| facts(report(&OK.replace(r#""lanes""#, &format!("{backup},\"lanes\""))));
    for (at, failed, row, trouble) in [
        ("2026-11-19T19:15:00+05:30", false, "15 h 45 min old, of 2026-11-19 19:15", None),
        ("2026-11-19T09:00:00+05:30", false, "1 d 2 h old, of 2026-11-19 09:00", None),
        (
            "2026-11-19T08:59:59+05:30",
            false,
            "1 d 2 h old, of 2026-11-19 08:59",
            Some("backup_old"),
        ),
        (
            "2026-11-19T19:15:00+05:30",
            true,
            "15 h 45 min old, of 2026-11-19 19:15; the last attempt failed",
            Some("backup_failed"),
        ),
    ] {
        let facts = with(&format!(r#""backup":{{"succeeded_ist":"{at}","failed":{failed}}}"#));
        assert_eq!(
            (facts.status.as_str(), names(&facts)),
            ("ok", trouble.into_iter().collect()),
            "{at}"
        );
        let text = screen(&facts, Colours::Off);
        assert!(text.contains(&format!("\nbackup    {row}\n")), "{text}");
    }
    let never = with(r#""backup":{"failed":true}"#);
    assert_eq!(names(&never), ["backup_failed"]);
    let text = screen(&never, Colours::Off);
    assert!(text.contains("backup    none; the last attempt failed\n"), "{text}");
    // Without any, only an installation with a timer is told.
    let packaged = Config {
        state_dir: PACKAGE_STATE_DIR.into(),
        ..Config::default()
    };
    assert_eq!(names(&facts_with(report(OK), &packaged)), ["backup_none"]);
}

#[test]
fn a_refused_reload_stays_told() {
    let health =
        OK.replace(r#""lanes""#, r#""reload":{"refused_ist":"2026-11-20T10:59:00+05:30"},"lanes""#);
    let facts = facts(report(&health));
    assert_eq!((facts.status.as_str(), names(&facts)), ("degraded", vec!["reload_refused"]));
    let trouble = &facts.troubles[0];
    assert!(trouble.cause.contains("refused at 2026-11-20 10:59"), "{}", trouble.cause);
    assert!(trouble.cure.starts_with("bhav config check "), "{}", trouble.cure);
}

#[test]
fn states_of_feeds_are_words_on_the_screen() {
    let mute = OK.replace("{\"state\":\"ok\",\"age_ms\":340}", "{\"state\":\"mute\"}");
    let text = screen(&facts(report(&mute)), Colours::Off);
    assert!(
        text.contains("broker A  prices stand still\n") && !text.contains("mute"),
        "{text}"
    );
}

#[test]
fn a_source_that_runs_behind_says_so_and_when_it_will_have_passed_broker_a() {
    let public = r#""public":{"state":"ok","age_ms":14000,"delay_s":902}"#;
    let alone = OK.replace("\"public\":{\"state\":\"standby\"}", public);
    assert_ne!(alone, OK);
    let text = screen(&facts(report(&alone)), Colours::Off);
    let row = "public    ok; asked 14 s ago; 15 min behind the exchange\n";
    assert!(text.contains(row), "{text}");
    let waits = alone
        .replace(r#""index":"ok""#, r#""index":"stale""#)
        .replace(r#""as_of_ist":"#, r#""stale":true,"source":"broker_a","as_of_ist":"#);
    let told = facts(report(&waits));
    assert_eq!((told.status.as_str(), names(&told)), ("degraded", vec!["snapshot_waits"]));
    assert!(
        told.troubles[0]
            .cause
            .contains("15 min behind, so at about 11:15")
    );
    assert!(screen(&told, Colours::Off).contains("; OLD prices of 2026-11-20 11:00"));
    let old = waits.replace(r#""state":"ok","age_ms":14000"#, r#""state":"failing""#);
    assert!(names(&facts(report(&old))).contains(&"snapshot_old"));
}

#[test]
fn words_of_another_version_are_read_as_the_fallback() {
    let newer = OK
        .replacen("\"database\":\"ok\"", "\"database\":\"on_fire\"", 1)
        .replace("\"status\":\"ok\"", "\"status\":\"degraded\"")
        .replace("\"signals\":\"ok\"", "\"signals\":\"dreaming\"")
        .replace("{\"state\":\"standby\"}", "{\"state\":\"napping\"}");
    let facts = facts(report(&newer));
    assert_eq!(names(&facts), ["store_unavailable", "public_fails"]);
    let text = screen(&facts, Colours::Off);
    assert!(text.contains("\npublic    failing\n"), "{text}");
    assert!(text.contains("\nwarmers   starting: signals; ok: index, "), "{text}");
}

#[test]
fn members_of_the_json_keep_their_order() {
    let json = sonic_rs::to_string(&facts(report(OK))).unwrap();
    let names = [
        "status", "url", "service", "version", "uptime_s", "now_ist", "node", "market",
    ];
    let more = [
        "feeds", "tokens", "store", "backup", "warmers", "caches", "lanes", "troubles",
    ];
    let places = names
        .iter()
        .chain(&more)
        .map(|name| json.find(&format!("\"{name}\":")).unwrap());
    assert!(places.is_sorted(), "{json}");
}

#[test]
fn control_characters_are_escaped_in_the_json_and_blank_on_the_screen() {
    let strange = OK.replace("\"version\":\"0.1.0\"", "\"version\":\"\\u001b[2J\"");
    let facts = facts(report(&strange));
    let json = sonic_rs::to_string(&facts).unwrap();
    assert!(json.contains(r#""version":"\u001b[2J""#), "{json}");
    assert!(screen(&facts, Colours::Off).starts_with("bhav is ok, version  [2J, up "));
}
