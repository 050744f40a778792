//! The token of the day over a restart: the real program stores it with its supervisor, and the
//! next process takes it.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use bhav::base::Broker;
use bhav::brokers::session::token::DOCUMENT_BYTES_MAX;
use bhav::ops::notify;
use rustix::fs::{SealFlags, fcntl_get_seals};
use secrecy::ExposeSecret;

use super::supervisor::{Place, Supervisor};
use crate::support::until;

const A: &str = "broker-a-token";
const B: &str = "broker-b-token";
const STATUS_A: &str = "/brokera/status";
const STATUS_B: &str = "/brokerb/status";
/// Both apps of the simulator, without a login.
const APPS: &[(&str, &str)] = &[
    ("BROKERA_API_KEY", "simkeya"),
    ("BROKERA_API_SECRET", "simsecreta"),
    ("BROKERB_API_KEY", "sim+key=b&1"),
    ("BROKERB_API_SECRET", "simsecretb"),
];

#[test]
fn both_tokens_outlive_restarts_and_a_crash_and_no_file_has_them() {
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(APPS);
    assert_eq!(supervisor.json(STATUS_A)["initialized"], false);
    let (a, b) = (supervisor.activate_a(), supervisor.activate_b());
    supervisor.until_kept(&[A, B]);
    for name in [A, B] {
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        assert!(
            fcntl_get_seals(&supervisor.kept[name])
                .unwrap()
                .contains(seals)
        );
    }
    let (kept_a, kept_b) = (supervisor.document(A), supervisor.document(B));
    assert_eq!((kept_a.broker, kept_b.broker), (Broker::A, Broker::B));
    assert!(kept_a.settings_token.is_none() && kept_b.settings_token.is_none());
    let places = [
        (Place::First, false),
        (Place::Last, true),
        (Place::Nowhere, false),
    ];
    for (place, crash) in places {
        if crash {
            running.kill();
            supervisor.hear();
        } else {
            supervisor.stop(&mut running);
        }
        supervisor.socket = place;
        supervisor.heard.clear();
        running = supervisor.start(APPS);
        // The very first answers have it, to the nanosecond of their first setting.
        assert_eq!(supervisor.json(STATUS_A), a);
        assert_eq!(supervisor.json(STATUS_B), b);
        supervisor.until_prices_of("broker_a");
        until("both kept anew", || {
            supervisor.hear();
            (supervisor.heard.len() >= 4).then_some(())
        });
        let expected = [A, B].map(|name| [format!("forget {name}"), format!("keep {name}")]);
        assert_eq!(supervisor.heard, expected.concat());
        for (name, before) in [(A, &kept_a), (B, &kept_b)] {
            let now = supervisor.document(name);
            assert_eq!(now.set_at, before.set_at);
            assert_eq!(now.access_token.expose_secret(), before.access_token.expose_secret());
        }
        let output = supervisor.output();
        assert_eq!(
            output
                .matches("token of the day kept over the restart")
                .count(),
            2,
            "{output}"
        );
    }
    supervisor.stop(&mut running);
    let calls = supervisor.scene.stats();
    assert_eq!(calls["requests"]["broker_a.session"], 1, "nobody logged in again");
    assert_eq!(calls["requests"]["broker_b.customerdetails"], 1);
    for kept in [kept_a, kept_b] {
        supervisor.nowhere_on_disk(kept.access_token.expose_secret());
    }
}

#[test]
fn a_new_login_replaces_what_is_kept_and_a_refusal_removes_it() {
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(APPS);
    supervisor.activate_a();
    supervisor.until_kept(&[A]);
    let first = supervisor.document(A);
    supervisor.activate_a();
    until("the second", || {
        supervisor.hear();
        (supervisor.heard.len() == 3).then_some(())
    });
    assert_eq!(
        supervisor.heard,
        [
            format!("keep {A}"),
            format!("forget {A}"),
            format!("keep {A}")
        ]
    );
    let second = supervisor.document(A);
    assert_ne!(first.access_token.expose_secret(), second.access_token.expose_secret());
    assert_eq!(
        supervisor
            .scene
            .control("POST", "broker_a/expire", "")
            .status,
        200
    );
    supervisor.until_kept(&[]);
    assert_eq!(supervisor.json(STATUS_A)["valid"], false);
    supervisor.stop(&mut running);
    let _next = supervisor.start(APPS);
    assert_eq!(supervisor.json(STATUS_A)["initialized"], false);
}

#[test]
fn a_login_just_before_the_end_is_kept_and_one_refused_meanwhile_is_dropped_by_the_next() {
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(APPS);
    // The main loop may not have run in between. The stop stores the token once more.
    supervisor.activate_a();
    supervisor.stop(&mut running);
    supervisor.until_kept(&[A]);
    assert_eq!(
        supervisor
            .scene
            .control("POST", "broker_a/expire", "")
            .status,
        200
    );
    let _next = supervisor.start(APPS);
    until("the broker's refusal", || {
        let status = supervisor.json(STATUS_A);
        assert_eq!(status["initialized"], true);
        (status["valid"] == false).then_some(())
    });
    supervisor.until_kept(&[]);
}

#[test]
fn with_another_api_key_it_is_not_used() {
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(APPS);
    supervisor.activate_a();
    supervisor.activate_b();
    supervisor.until_kept(&[A, B]);
    supervisor.stop(&mut running);
    let _next = supervisor.start(&[
        ("BROKERA_API_KEY", "another"),
        ("BROKERA_API_SECRET", "simsecreta"),
        ("BROKERB_API_KEY", "sim+key=b&1"),
        ("BROKERB_API_SECRET", "simsecretb"),
    ]);
    assert_eq!(supervisor.json(STATUS_A)["initialized"], false);
    assert_eq!(supervisor.json(STATUS_B)["valid"], true);
    supervisor.until_kept(&[B]);
    let output = supervisor.output();
    assert!(output.contains("the settings have another API key"), "{output}");
}

#[test]
fn a_newer_token_of_the_settings_wins_over_the_one_that_was_kept() {
    let with = |token| [APPS, &[("BROKERA_ACCESS_TOKEN", token)]].concat();
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(&with("simtokena"));
    let activated = supervisor.activate_a();
    supervisor.until_kept(&[A]);
    assert!(supervisor.document(A).settings_token.is_some());
    supervisor.stop(&mut running);
    // The settings have not changed, so the login is newer.
    let mut running = supervisor.start(&with("simtokena"));
    assert_eq!(supervisor.json(STATUS_A), activated);
    supervisor.until_prices_of("broker_a");
    supervisor.stop(&mut running);
    // Only the new token is valid now.
    assert_eq!(
        supervisor
            .scene
            .control("POST", "broker_a/expire", "")
            .status,
        200
    );
    let body = r#"{"access_token":"fresh1"}"#;
    assert_eq!(
        supervisor
            .scene
            .control("POST", "broker_a/token", body)
            .status,
        200
    );
    let _next = supervisor.start(&with("fresh1"));
    assert_eq!(supervisor.json(STATUS_A)["valid"], true);
    supervisor.until_kept(&[]);
    supervisor.until_prices_of("broker_a");
    let output = supervisor.output();
    assert!(output.contains("the settings have a newer token"), "{output}");
    assert!(!output.contains("fresh1"));
}

#[test]
fn what_cannot_be_read_is_dropped_and_the_service_starts() {
    let sealed = |bytes: &[u8]| notify::sealed("test", bytes).unwrap();
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(APPS);
    supervisor.activate_a();
    supervisor.until_kept(&[A]);
    let good = File::from(supervisor.kept.remove(A).unwrap());
    let mut document = vec![0; usize::try_from(good.metadata().unwrap().len()).unwrap()];
    good.read_exact_at(&mut document, 0).unwrap();
    supervisor.stop(&mut running);
    let mut newer = document.clone();
    newer[b"bhav-token".len()] = 3;
    let (socket, mut other) = UnixStream::pair().unwrap();
    other.write_all(&document).unwrap();
    for (name, file, reason) in [
        (A, sealed(b"GARBAGE"), "not a document of ours"),
        (A, sealed(b""), "not a document of ours"),
        (A, sealed(&document[..document.len() - 1]), "damaged or cut short"),
        (A, sealed(&newer), "written in version 3"),
        (A, sealed(&vec![b'x'; DOCUMENT_BYTES_MAX + 1]), "cannot be read"),
        (A, socket.into(), "cannot be read"),
        (B, sealed(&document), "of another broker"),
    ] {
        supervisor.kept.insert(name.to_owned(), file);
        let mut running = supervisor.start(APPS);
        assert_eq!(supervisor.json(STATUS_A)["initialized"], false, "{reason}");
        assert_eq!(supervisor.json(STATUS_B)["initialized"], false, "{reason}");
        supervisor.until_kept(&[]);
        supervisor.stop(&mut running);
        let output = supervisor.output();
        assert_eq!(
            output
                .matches("token of the day that was kept is not used")
                .count(),
            1,
            "{output}"
        );
        assert!(output.contains(reason) && !output.contains("GARBAGE"), "{reason}: {output}");
    }
}

#[test]
fn what_the_supervisor_does_not_hear_costs_one_line_and_no_login() {
    let mut supervisor = Supervisor::new();
    std::fs::remove_file(supervisor.scene.state.path().join("notify")).unwrap();
    let mut running = supervisor.start(APPS);
    supervisor.activate_a();
    supervisor.until_prices_of("broker_a");
    supervisor.stop(&mut running);
    let output = supervisor.output();
    assert_eq!(
        output
            .matches("token of the day not kept for a restart")
            .count(),
        1,
        "{output}"
    );
}
