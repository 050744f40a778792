//! Servers that are stopped, away, full, read-only, foreign or of another version, and faults that
//! only PostgreSQL has.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustix::process::{Pid, Signal, kill_process};

use super::conformance_tests::Schema;
use super::test_server::{Server, server};
use crate::base::{Broker, Clock};
use crate::store::condition::PROBE_WRITE;
use crate::store::conformance::samples::{sync, user};
use crate::store::settings::{StoreSettings, StoreUrl};
use crate::store::tx::Sql;
use crate::store::write::{READ_DEADLINE_MS, WRITE_DEADLINE_MS, Write};
use crate::store::{AccountId, NewUser, OpenError, Store, StoreError, Turn, UserDirectory};
use crate::store::{accounts, portfolios};

/// Time that a call may take beyond its deadline on a busy machine.
const MARGIN_MS: u64 = 1_500;

/// A schema with an open store; `None` where there is no server.
fn fresh() -> Option<(Schema, Store)> {
    let schema = Schema::through(server()?);
    let store = schema.store();
    Some((schema, store))
}

fn signal(processes: &[i32], signal: Signal) {
    for process in processes {
        // A process that has ended needs no signal.
        let _ = kill_process(Pid::from_raw(*process).unwrap(), signal);
    }
}

impl Schema {
    fn backends(&self) -> Vec<i32> {
        let role = self.role();
        let server = server().unwrap();
        let sql = format!("SELECT pid FROM pg_stat_activity WHERE usename = '{role}'");
        server
            .execute("bhav", &sql)
            .unwrap()
            .lines()
            .map(|line| line.parse().unwrap())
            .collect()
    }

    fn admin(&self, statements: &str) {
        server().unwrap().execute("bhav", statements).unwrap();
    }

    /// Makes each write of the probe fail with this code.
    fn fail_probes_with(&self, code: &str) {
        let made = format!(
            "CREATE OR REPLACE FUNCTION refuse_probe() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{code}'; END $$; \
             CREATE OR REPLACE TRIGGER probes BEFORE UPDATE ON probe \
             FOR EACH ROW EXECUTE FUNCTION refuse_probe()"
        );
        self.execute(&made).unwrap();
    }
}

fn write_probe(store: &Store) -> Result<(), StoreError> {
    store.write(Write::new(), |tx| tx.run(PROBE_WRITE, &[]).map(drop))
}

/// Runs a call and measures its time.
fn timed<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let clock = Clock::system();
    let began_ms = clock.monotonic_ms();
    let done = call();
    (done, clock.monotonic_ms() - began_ms)
}

#[test]
fn a_stopped_server_process_ends_each_call_by_its_deadline_and_the_next_is_served() {
    let Some((schema, store)) = fresh() else {
        return;
    };
    let id = user(&store, "a@example.com");
    store.user_by_id(id).unwrap();
    let stopped = schema.backends();
    assert!(!stopped.is_empty());
    signal(&stopped, Signal::STOP);
    let (read, read_ms) = timed(|| store.user_by_id(id).map(drop));
    let (written, write_ms) = timed(|| store.revoke_token("one", 5));
    // Both connections were idle ones; a call without one would get a new connection at once.
    for (result, took_ms, deadline_ms) in [
        (read, read_ms, READ_DEADLINE_MS),
        (written, write_ms, WRITE_DEADLINE_MS),
    ] {
        assert!(matches!(result, Ok(()) | Err(StoreError::Late)), "{result:?}");
        assert!(took_ms < deadline_ms + MARGIN_MS, "{took_ms} ms of {deadline_ms}");
    }
    assert!(
        read_ms.max(write_ms) >= READ_DEADLINE_MS,
        "nothing waited: {read_ms}, {write_ms}"
    );
    assert!(store.user_by_id(id).unwrap().is_some(), "through a new connection");
    store.revoke_token("two", 5).unwrap();
    assert_eq!(store.health().state.as_str(), "ok");
    signal(&stopped, Signal::CONT);
}

#[test]
fn a_commit_that_is_not_answered_may_have_happened() {
    let Some((schema, store)) = fresh() else {
        return;
    };
    let schema = std::sync::Arc::new(schema);
    let within = std::sync::Arc::clone(&schema);
    let (result, took_ms) = timed(|| {
        store.write(Write::new(), move |tx| {
            tx.run(PROBE_WRITE, &[])?;
            signal(&within.backends(), Signal::STOP);
            Ok(())
        })
    });
    assert_eq!(result, Err(StoreError::Late));
    assert!(took_ms < WRITE_DEADLINE_MS + MARGIN_MS, "{took_ms} ms");
    signal(&schema.backends(), Signal::CONT);
}

#[test]
fn connections_that_were_ended_between_calls_are_made_anew_within_the_call() {
    let Some((schema, store)) = fresh() else {
        return;
    };
    let id = user(&store, "a@example.com");
    for _ in 0..3 {
        // Uses as many connections as reader threads.
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| store.user_by_id(id).unwrap());
            }
        });
        for backend in schema.backends() {
            schema.admin(&format!("SELECT pg_terminate_backend({backend})"));
        }
        assert!(store.user_by_id(id).unwrap().is_some());
        for backend in schema.backends() {
            schema.admin(&format!("SELECT pg_terminate_backend({backend})"));
        }
        write_probe(&store).unwrap();
    }
    assert_eq!(store.health().refused, 0);
}

#[test]
fn a_transaction_that_the_server_ended_is_tried_once_more() {
    let Some((schema, store)) = fresh() else {
        return;
    };
    schema
        .execute(
            "CREATE SEQUENCE tries; CREATE FUNCTION refuse_first() RETURNS trigger \
             LANGUAGE plpgsql AS $$ BEGIN IF nextval('tries') % 3 <> 0 THEN \
             RAISE EXCEPTION 'on purpose' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$; \
             CREATE TRIGGER probes BEFORE UPDATE ON probe \
             FOR EACH ROW EXECUTE FUNCTION refuse_first()",
        )
        .unwrap();
    assert_eq!(write_probe(&store), Err(StoreError::Busy), "the first and the second time");
    assert_eq!(write_probe(&store), Ok(()), "the third time");
    schema.execute("SELECT setval('tries', 4)").unwrap();
    assert_eq!(write_probe(&store), Ok(()), "the second time of this call");
}

#[test]
fn errors_of_the_server_have_the_words_of_the_other_engine() {
    let Some((schema, store)) = fresh() else {
        return;
    };
    for (code, state) in [
        ("53100", "full"),
        ("25006", "read_only"),
        ("XX001", "corrupt"),
    ] {
        schema.fail_probes_with(code);
        let refused = write_probe(&store);
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{code}: {refused:?}");
        assert_eq!(store.health().state.as_str(), state, "{code}");
        store.auth_state().unwrap();
        assert_eq!(store.health().state.as_str(), state, "a read shows nothing about writing");
        schema.execute("DROP TRIGGER probes ON probe").unwrap();
        store.probe();
        assert_eq!(
            (store.health().state.as_str(), store.health().cause.as_str()),
            ("ok", ""),
            "{code}"
        );
    }
    for (code, told) in [("55P03", StoreError::Busy), ("57014", StoreError::Late)] {
        schema.fail_probes_with(code);
        assert_eq!(write_probe(&store), Err(told), "{code}");
        assert_eq!(store.health().state.as_str(), "ok", "{code}");
    }
}

#[test]
fn a_lock_that_is_not_given_is_busy_before_the_deadline() {
    let Some((schema, store)) = fresh() else {
        return;
    };
    let id = user(&store, "a@example.com");
    let held = schema.store();
    let other = &store;
    let (refused, took_ms) = std::thread::scope(|scope| {
        let (locked, is_locked) = crossbeam_channel::bounded::<()>(1);
        let (release, released) = crossbeam_channel::bounded::<()>(1);
        let holder = scope.spawn(move || {
            held.write(Write::new().of([id]), move |tx| {
                portfolios::expect_user(tx, id)?;
                locked.send(()).ok();
                released.recv().ok();
                Ok(())
            })
        });
        is_locked.recv().unwrap();
        let refused = timed(|| other.delete_portfolio(&Turn::alone(id)).map(drop));
        release.send(()).unwrap();
        holder.join().unwrap().unwrap();
        refused
    });
    assert_eq!(refused, Err(StoreError::Busy));
    assert!((1_500..WRITE_DEADLINE_MS).contains(&took_ms), "{took_ms} ms");
    store.delete_portfolio(&Turn::alone(id)).unwrap();
}

#[test]
fn a_user_becomes_visible_before_any_with_a_higher_id() {
    let Some((schema, store)) = fresh() else {
        return;
    };
    let first = user(&store, "a@example.com");
    let beside = std::sync::Arc::new(schema.store());
    let seen = std::sync::Arc::clone(&beside);
    let new = NewUser {
        email: "b@example.com".to_owned(),
        name: None,
        password_hash: "hash".to_owned(),
        created_ms: 1,
    };
    let second = store
        .write(Write::new(), move |tx| {
            let made = accounts::create(tx, &new)?;
            let state = seen.auth_state().unwrap();
            assert_eq!((state.users, state.last_user), (vec![first], first), "not committed yet");
            Ok(made.user.id)
        })
        .unwrap();
    let state = beside.auth_state().unwrap();
    assert_eq!((state.users.len(), state.last_user), (2, second));
    store.erase_user(second).unwrap();
    assert_eq!(beside.auth_state().unwrap().last_user, second, "an id is never given again");
    assert!(user(&store, "c@example.com") > second);
}

#[test]
fn nodes_that_start_at_once_make_one_schema() {
    let Some(server) = server() else { return };
    let schema = Schema::through(server);
    let ids: Vec<String> = std::thread::scope(|scope| {
        let node = || schema.store().auth_state().unwrap().incarnation;
        let nodes: Vec<_> = (0..4).map(|_| scope.spawn(node)).collect();
        nodes.into_iter().map(|node| node.join().unwrap()).collect()
    });
    assert_eq!(ids[0].len(), 32);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[test]
fn a_newer_schema_is_served_while_it_may_be_and_a_foreign_one_never() {
    let Some((schema, store)) = fresh() else {
        return;
    };
    let id = user(&store, "a@example.com");
    schema.execute("UPDATE schema SET version = 99").unwrap();
    assert!(schema.store().user_by_id(id).unwrap().is_some());
    schema
        .execute("UPDATE schema SET least_program = 98")
        .unwrap();
    let url = schema.url();
    let settings = StoreSettings {
        url: Some(url.clone()),
        ..StoreSettings::default()
    };
    let open = || Store::on_server(url, &StoreSettings::default(), &Clock::system()).err();
    let refused = open().expect("the program is too old");
    assert!(
        matches!(
            refused,
            OpenError::NewerSchema {
                needs: 98,
                found: 99,
                ..
            }
        ),
        "{refused}"
    );
    assert!(UserDirectory::open("".as_ref(), &settings).is_err());
    schema.execute("DROP TABLE schema").unwrap();
    let refused = open().expect("tables without a schema of ours");
    assert!(matches!(refused, OpenError::ForeignSchema { .. }), "{refused}");
}

#[test]
fn a_newer_program_s_schema_is_noticed_with_the_next_connection() {
    let Some((schema, store)) = fresh() else {
        return;
    };
    let id = user(&store, "a@example.com");
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE usename = current_user AND pid <> pg_backend_pid()";
    schema
        .execute(&format!("UPDATE schema SET version = 99, least_program = 99; {end}"))
        .unwrap();
    for refused in [store.user_by_id(id).map(drop), store.revoke_token("t", 5)] {
        let Err(StoreError::Unavailable(why)) = refused else {
            panic!("{refused:?}")
        };
        assert!(why.contains("run the newer program"), "{why}");
    }
    assert_eq!(store.health().state.as_str(), "unavailable");
    let known = crate::store::schema::known_server_version();
    schema
        .execute(&format!("UPDATE schema SET version = {known}, least_program = 7"))
        .unwrap();
    store.revoke_token("t", 5).unwrap();
    assert_eq!(store.health().state.as_str(), "ok");
}

#[test]
fn a_database_that_is_elsewhere_gets_one_new_identity_of_all_nodes() {
    let Some((schema, store)) = fresh() else {
        return;
    };
    let first = store.identity().unwrap();
    assert_eq!(store.claim_secret("own", &[]).unwrap(), None);
    assert_eq!(schema.store().identity().unwrap(), first, "a start keeps it");
    schema
        .execute("UPDATE identity SET place = 'elsewhere'")
        .unwrap();
    let found: Vec<_> = std::thread::scope(|scope| {
        let node = || schema.store().identity().unwrap();
        let nodes: Vec<_> = (0..4).map(|_| scope.spawn(node)).collect();
        nodes.into_iter().map(|node| node.join().unwrap()).collect()
    });
    assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
    assert_ne!(found[0].incarnation, first.incarnation);
    assert_ne!(found[0].cluster, first.cluster);
    assert_eq!(store.claim_secret("another", &[]).unwrap(), None, "whoever has it may");
    assert_eq!(store.claim_secret("own", &[]).unwrap(), Some("another".to_owned()));
    assert_eq!(store.claim_secret("own", &["another".to_owned()]).unwrap(), None, "in turn");
    // An older program does not write an account's epoch.
    let add = "INSERT INTO users (email, password_hash, created_ms) VALUES ('old', '', 1)";
    schema.execute(add).unwrap();
    assert!(store.user_by_email("old").unwrap().unwrap().token_epoch > 0);
}

#[test]
fn a_server_that_is_away_at_the_start_is_waited_for() {
    let Some(server) = server() else { return };
    let away = tempfile::tempdir().unwrap();
    let url = format!("postgres:///postgres?host={}&user=bhav", away.path().display());
    let url = StoreUrl::parse(&url).unwrap();
    let settings = StoreSettings::default();
    let store = Store::on_server(&url, &settings, &Clock::system()).unwrap();
    let (refused, took_ms) = timed(|| store.user_by_id(AccountId(1)).map(drop));
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(took_ms < READ_DEADLINE_MS, "{took_ms} ms");
    assert_eq!(store.health().state.as_str(), "unavailable");
    // The server comes: its socket appears at the expected path. Another role has another schema.
    server
        .execute("bhav", "DROP SCHEMA IF EXISTS bhav CASCADE; CREATE SCHEMA bhav")
        .unwrap();
    let socket = ".s.PGSQL.5432";
    std::os::unix::fs::symlink(server.directory.join(socket), away.path().join(socket)).unwrap();
    let served = || {
        store.probe();
        store.health().state.as_str() == "ok"
    };
    let parker = crate::rt::moving::Parker::current();
    for _ in 0..200 {
        if served() {
            break;
        }
        parker.park(50);
    }
    assert_eq!(store.health().state.as_str(), "ok", "{}", store.health().cause);
    user(&store, "a@example.com");
}

#[test]
fn pages_are_complete_where_the_database_sorts_as_people_do() {
    let Some(server) = server() else { return };
    let role = server.fresh_role();
    let made = format!(
        "CREATE DATABASE {role} OWNER {role} TEMPLATE template0 ENCODING 'UTF8' \
         LOCALE 'C.UTF-8' LOCALE_PROVIDER icu ICU_LOCALE 'en-IN'"
    );
    server.execute("bhav", &made).unwrap();
    let url = server
        .url(&role)
        .replace("/postgres?", &format!("/{role}?"));
    let url = StoreUrl::parse(&url).unwrap();
    let store = Store::on_server(&url, &StoreSettings::default(), &Clock::system()).unwrap();
    let id = user(&store, "a@example.com");
    let tickers = [
        "M&M",
        "M-M",
        "MM",
        "ABB",
        "A-B",
        "BAJAJ-AUTO",
        "BAJAJAUTO",
        "3MINDIA",
    ];
    sync(&store, id, Broker::A, 1, &tickers);
    let mut expected: Vec<String> = tickers.iter().map(|name| format!("NSE:{name}")).collect();
    expected.sort();
    let sorted_by_people = store
        .read(READ_DEADLINE_MS, |tx| {
            const ASK: Sql = Sql {
                name: "ASK",
                text: "SELECT 'a' < 'B'",
                of_postgres: None,
            };
            Ok(tx
                .first(ASK, &[], |row| row.get::<bool>(0))?
                .unwrap_or_default())
        })
        .unwrap();
    assert!(sorted_by_people, "the database would not show it");
    let mut found: Vec<String> = Vec::new();
    let mut last = None;
    loop {
        let page = store.held_symbols(last.as_ref(), 3).unwrap();
        found.extend(page.iter().map(|symbol| symbol.as_str().to_owned()));
        match page.last() {
            Some(symbol) => last = Some(symbol.clone()),
            None => break,
        }
    }
    assert_eq!(found, expected);
}

fn pem(kind: &str, der: &[u8]) -> String {
    format!(
        "-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n",
        BASE64_STANDARD.encode(der)
    )
}

/// A port that nobody uses at the moment.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

#[test]
fn certificates_and_passwords_are_checked_and_a_host_that_resets_is_passed_over() {
    if server().is_none() {
        return;
    }
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = pem("CERTIFICATE", own.cert.der());
    let port = free_port();
    let prepare = |data: &std::path::Path| {
        let write = |name: &str, text: &str| {
            let path = data.join(name);
            std::fs::write(&path, text).unwrap();
            let about = std::fs::metadata(data).unwrap();
            use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
            chown(&path, Some(about.uid()), Some(about.gid())).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("server.crt", &certificate);
        write("server.key", &pem("PRIVATE KEY", &own.key_pair.serialize_der()));
        write("pg_hba.conf", "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n");
    };
    let port_setting = format!("port={port}");
    let settings = ["listen_addresses=127.0.0.1", "ssl=on", &port_setting];
    let server = Server::start_at(port, prepare, &settings);
    server
        .execute("bhav", "CREATE ROLE t LOGIN PASSWORD 'open sesame'")
        .unwrap();
    server
        .execute("bhav", "CREATE SCHEMA AUTHORIZATION t")
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let ca_file = directory.path().join("ca.pem");
    std::fs::write(&ca_file, &certificate).unwrap();
    let open = |url: &str, ca: bool, password: &str| {
        let settings = StoreSettings {
            ca_file: ca.then(|| ca_file.clone()),
            password: Some(password.into()),
            ..StoreSettings::default()
        };
        let url = StoreUrl::parse(url).unwrap();
        let store = Store::on_server(&url, &settings, &Clock::system()).unwrap();
        store
            .auth_state()
            .map(drop)
            .map_err(|_| store.health().cause)
    };
    let url = format!("postgres://t@localhost:{port}/postgres?sslmode=require");
    assert_eq!(open(&url, true, "open sesame"), Ok(()));
    let full = url.replace("sslmode=require", "sslmode=verify-full");
    assert_eq!(open(&full, true, "open sesame"), Ok(()));
    let refused = open(&url, true, "guess").unwrap_err();
    assert!(refused.contains("28P01") && !refused.contains("guess"), "{refused}");
    let refused = open(&url, false, "open sesame").unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");
    assert!(refused.contains("BHAV_STORE_CA_FILE"), "{refused}");
    let refused = open(&url.replace("localhost", "127.0.0.1"), true, "open sesame").unwrap_err();
    assert!(refused.contains("certificate"), "a certificate for another name: {refused}");

    let resets = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let first = resets.local_addr().unwrap().port();
    let both = format!("postgres://t@127.0.0.1:{first},127.0.0.1:{port}/postgres");
    std::thread::scope(|scope| {
        scope.spawn(|| resets.accept().map(drop));
        assert_eq!(open(&both, false, "open sesame"), Ok(()));
    });
}
