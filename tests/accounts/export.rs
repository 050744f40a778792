//! The export has everything that is stored of a user: each table with an owner is in it, or the
//! account of the tables says why not. It goes with the account.

use crate::accounts::keys::made;
use crate::ledger::owner::fill_ledger;
use crate::support::{Scene, Service, TRADING, bearer};
use bhav::store::{Exported, FILE_NAME, Owned, TABLES};
use rusqlite::Connection;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

const PASSWORD: &str = "nine green parrots";

/// The tables of a file whose rows belong to a user.
fn owned() -> impl Iterator<Item = (&'static str, &'static Owned)> {
    let in_file = TABLES.iter().filter(|table| !table.is_of_server);
    in_file.filter_map(|table| Some((table.name, table.owned.as_ref()?)))
}

fn count(file: &Connection, sql: &str) -> i64 {
    file.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn fill_journal_lists_and_portfolio(scene: &Scene, service: &Service, login: &str) {
    let mut client = service.client();
    let entry = r#"{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,
        "price":2}"#;
    client
        .send_json("POST", "/api/journal", login, entry)
        .with_status(201);
    let lists = r#"{"watchlists":[{"name":"mine","symbols":["NSE:INFY"]}]}"#;
    client
        .send_json("PUT", "/api/watchlists", login, lists)
        .with_status(200);
    let held = r#"{"user_id":"SA0001","rows":[
        {"symbol":"NSE:TCS","quantity":5,"average_paise":300000},
        {"symbol":"NSE:INFY","quantity":0,"sold":5,"average_paise":150000}]}"#;
    assert_eq!(scene.control("POST", "broker_a/holdings", held).status, 200);
    let code = scene.request_token();
    let body =
        format!(r#"{{"api_key":"simkeya-1","api_secret":"simsecreta","request_token":"{code}"}}"#);
    client
        .send_json("POST", "/api/portfolio/sync", login, &body)
        .with_status(200);
}

/// Names of the tables whose rows belong to a user, in order.
fn tables_with_an_owner(file: &Connection) -> Vec<String> {
    let found = "SELECT name FROM pragma_table_list t WHERE schema = 'main' AND type = 'table'
        AND (name = 'users' OR EXISTS (SELECT 1 FROM pragma_table_info(t.name) c
            WHERE c.name IN ('user_id', 'email', 'account_id')))
        ORDER BY name";
    let mut found = file.prepare(found).unwrap();
    let found = found.query_map([], |row| row.get::<_, String>(0)).unwrap();
    found.map(Result::unwrap).collect()
}

#[test]
fn every_table_with_an_owner_is_exported_or_left_out_and_goes_with_the_account() {
    let (scene, service) = Scene::trading();
    let token = service.register("asha@example.com", PASSWORD);
    let login = bearer(&token);
    let mut client = service.client();
    let (_, key) = made(&service, &login, r#""journal:read""#, "");
    client
        .request("GET", "/api/journal", &bearer(&key))
        .with_status(200);
    fill_journal_lists_and_portfolio(&scene, &service, &login);
    fill_ledger(&service, &login);
    let export = client
        .request("GET", "/api/portfolio/export", &login)
        .with_status(200);
    let file = Connection::open(scene.state.path().join(FILE_NAME)).unwrap();
    let found = tables_with_an_owner(&file);
    let mut known: Vec<&str> = owned().map(|(table, _)| table).collect();
    known.sort_unstable();
    assert_eq!(found, known, "say in `TABLES` where the export has a new table, or why not");
    let json = export.json();
    let id = json["user"]["id"].as_i64().unwrap();
    for (table, owned) in owned() {
        let Exported::As(member, secrets) = owned.exported else {
            continue;
        };
        let rows = count(&file, &format!("SELECT count(*) FROM {table}"));
        assert!(rows > 0, "the test fills {table}");
        let said = json[member].as_array().map_or(1, |said| said.len() as i64);
        assert!(said >= 1, "{member} is empty, and {table} has {rows} rows");
        for column in secrets {
            let secret = format!("SELECT {column} FROM {table}");
            let secret: String = file.query_row(&secret, [], |row| row.get(0)).unwrap();
            assert!(!export.text().contains(&secret), "{table}.{column}");
        }
    }
    assert!(!export.text().contains(&key), "the key itself");
    let said = &json["api_keys"][0];
    assert_eq!(said["name"].as_str(), Some("a widget"));
    assert_eq!(said["scopes"][0].as_str(), Some("journal:read"));
    assert!(said["last_used_at"].is_str() && said["created_at"].is_str(), "{said}");
    let network: String = file
        .query_row("SELECT network FROM login_networks", [], |row| row.get(0))
        .unwrap();
    assert_eq!(json["known_networks"][0]["network"].as_str(), Some(&*network));

    let body = format!(r#"{{"password":"{PASSWORD}"}}"#);
    client
        .send_json("DELETE", "/api/auth/account", &login, &body)
        .with_status(200);
    for (table, Owned { column, kept, .. }) in owned() {
        let left = count(&file, &format!("SELECT count(*) FROM {table} WHERE {column} = {id}"));
        assert!(left == 0 || kept.is_some(), "{left} rows of {table} stay");
    }
}

#[test]
fn keys_that_are_good_no_more_are_exported_as_long_as_they_are_stored() {
    let scene = Scene::at(TRADING);
    let service = scene.start();
    let token = service.register("asha@example.com", PASSWORD);
    made(&service, &bearer(&token), r#""journal:read""#, "");
    service.stop();
    let file = Connection::open(scene.state.path().join(FILE_NAME)).unwrap();
    file.execute("UPDATE api_keys SET incarnation = 'of before', expires_ms = 1", [])
        .unwrap();
    drop(file);
    let service = scene.start();
    let mut client = service.client();
    let export = client
        .request("GET", "/api/portfolio/export", &bearer(&token))
        .json();
    assert_eq!(export["api_keys"].as_array().unwrap().len(), 1, "{export}");
}
