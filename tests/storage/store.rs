//! A database that an operator finds damaged, and files of every earlier schema. (`kill` tests the
//! survival of a kill, `upgrade` the way to a newer program and back.)

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{SNAPSHOT, Scene, TRADING, bearer, until};
use bhav::base::Clock;
use bhav::store::{FILE_NAME, Store};
use sonic_rs::JsonValueTrait;

fn open(dir: &Path) -> Store {
    Store::open_file(&dir.join(FILE_NAME), 2, &Clock::system()).unwrap()
}

#[test]
fn a_damaged_database_is_reported_left_alone_and_prices_go_on() {
    let scene = Scene::at(TRADING);
    let path = scene.state.path().join(FILE_NAME);
    let bytes = b"no database at all".repeat(400);
    fs::write(&path, &bytes).unwrap();
    let service = scene.start();
    service.fresh_snapshot();
    assert_eq!(service.get(SNAPSHOT).status, 200);
    let json = until("a report", || {
        Some(service.health()).filter(|json| json["warmers"]["index"] == "ok")
    });
    assert_eq!(
        (json["status"].as_str(), json["database"].as_str()),
        (Some("degraded"), Some("corrupt"))
    );
    service.stop();
    assert_eq!(fs::read(&path).unwrap(), bytes, "people's data is the operator's to restore");
}

#[test]
fn a_database_that_is_put_right_is_noticed_without_a_restart() {
    let scene = Scene::still_at(TRADING);
    let path = scene.state.path().join(FILE_NAME);
    fs::create_dir(&path).unwrap();
    let service = scene.start();
    scene.while_time_passes(|| {
        until("damage", || service.health()["database"] == "unavailable");
        fs::remove_dir(&path).unwrap();
        until("the end of it", || service.health()["database"] == "ok");
        until("the probe's write", || service.health()["store"]["commits"].as_u64() >= Some(1));
    });
}

fn packed(version: i64) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schemas");
    root.join(format!("v{version:02}.sqlite.gz"))
}

/// A file of this schema version, as its program left it.
pub fn of_version(version: i64) -> Option<Vec<u8>> {
    let packed = fs::read(packed(version)).ok()?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*packed), &mut bytes).unwrap();
    Some(bytes)
}

/// Makes the file of the newest schema of the one before: the program of today migrates it, and
/// writes in it what each user of the fixture gets with `ROWS`.
fn make(version: i64) {
    let scene = Scene::at(TRADING);
    let path = scene.state.path().join(FILE_NAME);
    fs::write(&path, of_version(version - 1).expect("the schema before has a file")).unwrap();
    let service = scene.start();
    let login = service.account("login", "asha@example.com", PASSWORD);
    let login = bearer(&login.field("access_token"));
    for (method, target, body) in ROWS {
        let answer = service.client().send_json(method, target, &login, body);
        assert!(answer.status < 300, "{target}: {}", answer.text());
    }
    service.stop();
    let file = fs::File::create_new(packed(version)).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, &fs::read(&path).unwrap()).unwrap();
    encoder.finish().unwrap();
}

const PASSWORD: &str = "nine green parrots";
/// What a new file is made with: a write to each table that the newest schema brings or changes.
const ROWS: [(&str, &str, &str); 1] = [(
    "PUT",
    "/api/watchlists",
    r#"{"watchlists":[{"id":2,"name":"kept ₹","symbols":["NSE:M&M","NSE:NIFTY 50"]}]}"#,
)];

#[test]
fn a_file_of_every_schema_version_is_opened_with_everything_in_it() {
    let known = known_version();
    if std::env::var_os("BHAV_BLESS").is_some() && of_version(known).is_none() {
        make(known);
    }
    let versions = (1..=known).filter_map(|version| Some((version, of_version(version)?)));
    let mut seen = 0;
    for (version, bytes) in versions {
        seen += 1;
        assert_eq!(seen, version, "none is left out");
        let scene = Scene::at(TRADING);
        let path = scene.state.path().join(FILE_NAME);
        fs::write(&path, bytes).unwrap();
        let service = scene.start();
        let login = |name: &str| service.account("login", &format!("{name}@example.com"), PASSWORD);
        let asha = bearer(&login("asha").field("access_token"));
        assert_eq!(login("shut").status, if version < 6 { 200 } else { 403 }, "{version}");
        assert_eq!(login("gone").status, 401, "{version}");
        let ask = |target: &str| {
            let answer = service.client().request("GET", target, &asha);
            assert_eq!(answer.status, 200, "{version} {target}: {}", answer.text());
            answer.text().to_owned()
        };
        if version >= 2 {
            let holdings = ask("/api/portfolio/holdings");
            assert!(holdings.contains("INFY") && holdings.contains("TCS"), "{version}: {holdings}");
            assert!(ask("/api/portfolio/positions").contains("NIFTY25NOVFUT"), "{version}");
        }
        if version >= 4 {
            assert!(
                ask("/api/journal").contains("kept \u{20b9}, of a program of before"),
                "{version}"
            );
        }
        if version >= 18 {
            let lists = ask("/api/watchlists");
            let kept = r#"{"id":2,"name":"kept ₹","symbols":["NSE:M&M","NSE:NIFTY 50"]}"#;
            assert!(lists.contains(kept), "{version}: {lists}");
        }
        if version >= 22 {
            assert!(ask("/api/trades").contains("\"trade_id\":\"51440918\""), "{version}");
            assert!(ask("/api/trades/corrections").contains("a note"), "{version}");
        }
        service.register("new@example.com", PASSWORD);
        service.stop();
        let file = rusqlite::Connection::open(&path).unwrap();
        let number = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(number("SELECT user_version FROM pragma_user_version"), known);
        assert_eq!(number("SELECT count(*) FROM pragma_foreign_key_check"), 0, "{version}");
        assert_eq!(number("SELECT id FROM users WHERE email = 'new@example.com'"), 4, "{version}");
        assert_eq!(number("SELECT count(*) FROM points"), if version < 2 { 0 } else { 2 });
        assert_eq!(
            number("SELECT count(*) FROM signal_ledger WHERE published_on = '2025-11-18'"),
            i64::from(version >= 5)
        );
        let whole: String = file
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(whole, "ok", "{version}");
        assert_eq!(
            version < known,
            path.with_extension(format!("sqlite.before-upgrade-v{version}"))
                .exists()
        );
    }
    assert_eq!(seen, known, "the newest schema has no file yet: BHAV_BLESS=1 makes it");
}

pub fn known_version() -> i64 {
    let state = tempfile::tempdir().unwrap();
    drop(open(state.path()));
    bhav::store::maintenance::inspect(&state.path().join(FILE_NAME))
        .unwrap()
        .known
}
