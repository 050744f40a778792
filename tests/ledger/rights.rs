//! Who reaches a ledger: its user by login and by keys with the scope, and nobody else.

use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::owner::{IMPORTS, Owner, TRADEBOOK, TRADES, file};
use crate::support::bearer;

/// A key of the owner with these scopes.
fn key(owner: &Owner, scopes: &str) -> String {
    let body =
        format!(r#"{{"name":"k","scopes":[{scopes}],"current_password":"a long enough secret"}}"#);
    bearer(
        &owner
            .service
            .post("/api/keys", &owner.auth, &body)
            .with_status(201)
            .field("key"),
    )
}

#[test]
fn another_user_sees_and_changes_nothing() {
    let owner = Owner::new();
    let live = owner.import("a", &file(TRADEBOOK));
    let open = owner.preview("a", &file("icici-tradebook.csv"))["id"]
        .as_i64()
        .unwrap();
    let correction = r#"{"kind":"fmv_indexed","isin":"INE040A01034"}"#;
    owner
        .send("PUT", "/api/trades/corrections/one", correction)
        .with_status(200);
    let other = bearer(
        &owner
            .service
            .register("other@example.com", "a long enough secret"),
    );
    let ask = |method: &str, target: &str| owner.service.client().request(method, target, &other);
    for id in [live, open, 999] {
        ask("DELETE", &format!("{IMPORTS}/{id}")).expect_problem(404, "import_not_found");
        let confirm = format!("{IMPORTS}/{id}/confirm");
        ask("POST", &confirm).expect_problem(404, "import_not_found");
    }
    let theirs = "/api/trades/corrections/one";
    ask("DELETE", theirs).expect_problem(404, "correction_not_found");
    for (target, list) in [
        (TRADES, "trades"),
        (IMPORTS, "imports"),
        ("/api/trades/corrections", "corrections"),
    ] {
        let answer = ask("GET", target).with_status(200);
        assert_eq!(answer.json()[list].as_array().unwrap().len(), 0, "{target}");
    }
    let everything = r#"{"confirm":"delete all trades"}"#;
    owner
        .service
        .client()
        .send_json("DELETE", TRADES, &other, everything)
        .with_status(204);
    let mut page = owner.get(&format!("{TRADES}?limit=4")).json();
    let cursor = page["next_cursor"].as_str().unwrap().to_owned();
    let foreign = format!("{TRADES}?limit=4&cursor={cursor}");
    ask("GET", &foreign).expect_problem(400, "cursor_invalid");
    page = owner.get(&foreign).with_status(200).json();
    assert_eq!(page["trades"].as_array().unwrap().len(), 4);
    assert_eq!(owner.trades().len(), 19);
    owner.confirm(open).with_status(200);
}

#[test]
fn a_key_needs_the_scope_and_deletes_no_ledger() {
    let owner = Owner::new();
    let reads = key(&owner, r#""trades:read""#);
    let writes = key(&owner, r#""trades:write""#);
    let others = key(&owner, r#""portfolio:read","journal:write""#);
    let target = format!("{IMPORTS}?account=a");
    for (headers, status) in [(&reads, 403), (&others, 403), (&writes, 201)] {
        let answer = owner
            .service
            .client()
            .send_file(&target, headers, &file(TRADEBOOK));
        assert_eq!(answer.status, status);
    }
    let get = |headers: &str| owner.service.client().request("GET", TRADES, headers);
    get(&writes).expect_problem(403, "scope_missing");
    get(&others).expect_problem(403, "scope_missing");
    get(&reads).with_status(200);
    let both = key(&owner, r#""trades:read","trades:write""#);
    let everything = r#"{"confirm":"delete all trades"}"#;
    let refused = owner
        .service
        .client()
        .send_json("DELETE", TRADES, &both, everything);
    refused.expect_problem(403, "login_required");
}

#[test]
fn an_erased_account_leaves_no_row_behind() {
    let owner = Owner::new();
    owner.import("a", &file(TRADEBOOK));
    owner.import("a", &file("zerodha-taxpnl-2024_2025.zip"));
    owner.preview("b", &file("icici-tradebook.csv"));
    let correction = r#"{"kind":"fmv_indexed","isin":"INE040A01034"}"#;
    owner
        .send("PUT", "/api/trades/corrections/one", correction)
        .with_status(200);
    let password = r#"{"password":"a long enough secret"}"#;
    owner
        .send("DELETE", "/api/auth/account", password)
        .with_status(200);
    let path = owner.scene.state.path().join(bhav::store::FILE_NAME);
    let stored = rusqlite::Connection::open(path).unwrap();
    let tables = bhav::store::TABLES
        .iter()
        .filter(|table| table.name.starts_with("ledger_"));
    let mut seen = 0;
    for table in tables {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let rows: i64 = stored.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{}", table.name);
        seen += 1;
    }
    assert_eq!(seen, 7);
}
