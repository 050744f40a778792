//! Limits of files and of ledgers, each reached.

use bhav::base::Clock;
use bhav::sim::SimSettings;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::owner::{IMPORTS, Owner, TRADEBOOK, counts, file};
use crate::support::{Scene, TRADING, say, until};

/// A tradebook of so many trades, whose ids begin at `first`.
pub fn tradebook(first: usize, rows: usize) -> Vec<u8> {
    let mut text = String::from(
        "symbol,isin,trade_date,exchange,segment,series,trade_type,auction,quantity,price,\
         trade_id,order_id,order_execution_time\n",
    );
    for at in first..first + rows {
        let day = at % 28 + 1;
        text.push_str(&format!(
            "INFY,INE009A01021,2024-09-{day:02},NSE,EQ,EQ,buy,false,1.000000,1893.200000,{at},1,\
             2024-09-{day:02}T09:31:02\n"
        ));
    }
    text.into_bytes()
}

#[test]
fn a_file_that_is_not_understood_says_what_was_seen() {
    let owner = Owner::new();
    let answer = owner.upload("a", b"name,value\nx,1\n");
    let problem = answer.expect_problem(422, "file_not_understood");
    assert_eq!(problem["seen"][0], "name | value", "{}", answer.text());
    for (file, status, code) in [
        (&b""[..], 422, "file_not_understood"),
        (b"a\0b", 422, "file_not_understood"),
        (b"PK\x03\x04broken", 422, "file_not_understood"),
    ] {
        owner.upload("a", file).expect_problem(status, code);
    }
    owner
        .bare("POST", &format!("{IMPORTS}?account=a"))
        .expect_problem(422, "file_not_understood");
    assert_eq!(
        owner.get(IMPORTS).json()["imports"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn a_head_that_asks_for_nothing_good_is_refused_before_the_file() {
    let owner = Owner::new();
    let post = |target: &str, lines: &str| {
        let text = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
             Content-Length: 1000000\r\n{lines}\r\n"
        );
        owner.service.client().ask(text)
    };
    let csv = "Content-Type: text/csv\r\n";
    let auth = &owner.auth;
    let target = format!("{IMPORTS}?account=a");
    post(&target, csv).expect_problem(401, "token_missing");
    post(&target, auth).expect_problem(415, "unsupported_media_type");
    let json = format!("{auth}Content-Type: application/json\r\n");
    post(&target, &json).expect_problem(415, "unsupported_media_type");
    let both = format!("{auth}{csv}");
    post(IMPORTS, &both).expect_problem(400, "validation_failed");
    post(&format!("{IMPORTS}?account=A"), &both).expect_problem(400, "validation_failed");
    post(&format!("{IMPORTS}?account=a&force=perhaps"), &both)
        .expect_problem(400, "validation_failed");
    assert_eq!(post(&target, &both).status, 100);
}

#[test]
fn so_many_files_a_minute_are_taken() {
    let owner = Owner::with(|config| config.store.import_attempts_per_minute = 2);
    owner.preview("a", &file(TRADEBOOK));
    owner
        .upload("a", b"x")
        .expect_problem(422, "file_not_understood");
    let refused = owner.upload("a", &file(TRADEBOOK));
    refused.expect_problem(429, "too_many_attempts");
    assert!(refused.header("retry-after").is_some());
}

#[test]
fn a_longer_file_than_the_setting_allows_is_413() {
    let owner = Owner::with(|config| config.http.upload_bytes_max = 2_000);
    owner
        .upload("a", &file(TRADEBOOK))
        .expect_problem(413, "file_too_large");
    owner.upload("a", &tradebook(0, 10)).with_status(201);
}

#[test]
fn a_ledger_is_full_at_its_rows_and_accounts() {
    let owner = Owner::with(|config| config.store.ledger_rows_max = 1_000);
    let preview = owner.preview("a", &tradebook(0, 600));
    let refused = owner.upload("a", &tradebook(600, 401));
    refused.expect_problem(409, "ledger_full");
    owner.import("a", &tradebook(600, 400));
    // A preview that is dropped gives its room back.
    owner.undo(preview["id"].as_i64().unwrap()).with_status(204);
    owner.import("a", &tradebook(1_000, 600));
    let owner = Owner::new();
    for number in 0..10 {
        let person = r#"{"person":"self"}"#;
        owner
            .send("PUT", &format!("/api/trades/accounts/n{number}"), person)
            .with_status(200);
    }
    owner
        .send("PUT", "/api/trades/accounts/n10", r#"{"person":"self"}"#)
        .expect_problem(409, "ledger_full");
    owner
        .upload("n10", &tradebook(0, 1))
        .expect_problem(409, "ledger_full");
    owner.upload("n9", &tradebook(0, 1)).with_status(201);
}

#[test]
fn corrections_that_make_too_much_work_are_named_and_can_be_deleted() {
    let owner = Owner::new();
    owner.import("a", &tradebook(0, 10));
    let put = |number: u32| {
        let day = 1 + number % 28;
        let month = 1 + number / 28;
        let body = format!(
            r#"{{"kind":"split","isin":"INE009A01021","ex_date":"2024-{month:02}-{day:02}",
            "numerator":2,"denominator":1}}"#
        );
        owner
            .send("PUT", &format!("/api/trades/corrections/s{number}"), &body)
            .with_status(200);
    };
    (0..64).for_each(put);
    owner.get("/api/trades/lots").with_status(200);
    put(64);
    for target in [
        "/api/trades",
        "/api/trades/lots",
        "/api/trades/gains?fy=2024-25",
    ] {
        let refused = owner.get(target);
        refused.expect_problem(409, "ledger_too_complex");
        assert!(refused.text().contains("64 corporate actions"), "{}", refused.text());
    }
    owner.get("/api/trades/corrections").with_status(200);
    owner
        .bare("DELETE", "/api/trades/corrections/s64")
        .with_status(204);
    owner.get("/api/trades/lots").with_status(200);
}

#[test]
fn a_preview_expires_and_is_swept() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let owner = Owner::on(Scene::by_hand(clock, SimSettings::default()), |_| {});
    let id = owner.preview("a", &file(TRADEBOOK))["id"].as_i64().unwrap();
    owner.scene.advance_ms(30 * 60_000 - 1_000);
    assert_eq!(
        owner.get(IMPORTS).json()["imports"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    owner.scene.advance_ms(1_000);
    owner.confirm(id).expect_problem(410, "import_gone");
    assert_eq!(
        owner.get(IMPORTS).json()["imports"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    // Its rows are removed within a minute.
    let rows = || {
        let path = owner.scene.state.path().join(bhav::store::FILE_NAME);
        let file = rusqlite::Connection::open(path).unwrap();
        file.query_row("SELECT count(*) FROM ledger_rows", [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    owner
        .scene
        .while_time_passes(|| until("the rows are swept", || rows() == 0));
}

#[test]
fn another_client_of_the_broker_is_refused_unless_it_is_forced() {
    let owner = Owner::new();
    let book = |client: &str| {
        let text = String::from_utf8(tradebook(1, 1)).unwrap();
        format!("Client ID,{client}\n{text}").into_bytes()
    };
    owner.import("a", &book("AB1234"));
    owner.upload("a", &book("AB1234")).with_status(201);
    owner
        .upload("a", &book("ZZ9999"))
        .expect_problem(409, "account_differs");
    owner.upload("x", &book("ZZ9999")).with_status(201);
    let forced = format!("{IMPORTS}?account=a&force=true");
    let answer = owner
        .service
        .client()
        .send_file(&forced, &owner.auth, &book("ZZ9999"));
    answer.with_status(201);
}

#[test]
fn a_large_tradebook_is_taken_in_batches() {
    let owner = Owner::new();
    let clock = Clock::system();
    let preview = owner.preview("a", &tradebook(0, 10_000));
    assert_eq!(counts(&preview), [10_000, 0, 0, 0, 0]);
    owner
        .confirm(preview["id"].as_i64().unwrap())
        .with_status(200);
    let took_ms = clock.monotonic_ms();
    say(&format!("10,000 rows previewed and confirmed in {took_ms} ms\n"));
    assert_eq!(owner.trades().len(), 10_000);
}
