//! `kill -9` while a file is read, written, confirmed or undone: after the next start the import is
//! whole or absent.

use std::path::PathBuf;
use std::process::Command;

use bhav::store::FILE_NAME;
use fastrand::Rng;
use rusqlite::Connection;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::limits::tradebook;
use super::owner::{IMPORTS, TRADES};
use crate::support::{Client, Program, Scene, TRADING, bearer, say, serve, until};

/// Kills of a run of the suite. [`KILLS`] asks for more.
const ROUNDS: usize = 10;
/// So many times as many rounds at most, until a kill is in the middle.
const LATE_ROUNDS: usize = 5;
const KILLS: &str = "BHAV_TEST_KILLS";
/// Several batches.
const ROWS: usize = 9_000;

/// An engine whose rows another process can count.
trait Engine {
    /// Names it to the program.
    fn given<'a>(&self, command: &'a mut Command) -> &'a mut Command;
    /// The rows that are stored.
    fn stored(&self) -> i64;
}

/// The database in the state directory.
struct File(PathBuf);

impl Engine for File {
    fn given<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
    }

    fn stored(&self) -> i64 {
        let file = Connection::open(&self.0).unwrap();
        file.query_row("SELECT count(*) FROM ledger_rows", [], |row| row.get(0))
            .unwrap()
    }
}

/// A role of a server, which lives on when the program is killed.
#[cfg(feature = "engines")]
struct Role(&'static crate::support::postgres::Server, String);

#[cfg(feature = "engines")]
impl Engine for Role {
    fn given<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("BHAV_STORE_URL", self.0.url(&self.1))
            .env("JWT_SECRET", "s".repeat(64))
    }

    fn stored(&self) -> i64 {
        let count = self
            .0
            .execute(&self.1, "SELECT count(*) FROM ledger_rows")
            .unwrap();
        count.trim().parse().unwrap()
    }
}

fn start(scene: &Scene, engine: &impl Engine) -> Program {
    let limits = ["login", "registration", "import"];
    let unlimited = limits.map(|what| format!("--{what}-attempts-per-minute=0"));
    Program::of(engine.given(serve(scene, scene.state.path()).args(unlimited)))
}

/// Sends a file, confirms it and undoes it, until the server is gone, or until so many answers.
fn come_and_go(address: &str, auth: &str, file: &[u8], answers_max: Option<u8>) -> Option<()> {
    let mut client = Client::try_connect(address).ok()?;
    let target = format!("{IMPORTS}?account=a");
    let mut answers = 0;
    loop {
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: text/csv\r\n\
             Content-Length: {}\r\n{auth}\r\n",
            file.len()
        );
        client.try_write(&[head.as_bytes(), file].concat()).ok()?;
        let preview = client.try_answer().ok()?.with_status(201).json();
        let id = preview["id"].as_i64().unwrap();
        answers += 1;
        for (method, target) in [
            ("POST", format!("{IMPORTS}/{id}/confirm")),
            ("DELETE", format!("{IMPORTS}/{id}")),
        ] {
            if answers_max == Some(answers) {
                return Some(());
            }
            let text = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{auth}\r\n");
            client.try_write(text.as_bytes()).ok()?;
            let status = client.try_answer().ok()?.status;
            assert!(matches!(status, 200 | 204), "{method} {target}: {status}");
            answers += 1;
        }
        if answers_max == Some(answers) {
            return Some(());
        }
    }
}

#[test]
fn after_a_kill_at_any_moment_an_import_is_whole_or_absent() {
    let scene = Scene::at(TRADING);
    let file = File(scene.state.path().join(FILE_NAME));
    is_whole_or_absent(&scene, &file);
}

#[cfg(feature = "engines")]
#[test]
fn after_a_kill_at_any_moment_an_import_on_a_server_is_whole_or_absent() {
    let Some(server) = crate::support::postgres::server() else {
        return;
    };
    is_whole_or_absent(&Scene::at(TRADING), &Role(server, server.fresh_role()));
}

fn is_whole_or_absent(scene: &Scene, engine: &impl Engine) {
    let asked = std::env::var(KILLS).ok().map(|text| text.parse().unwrap());
    let rounds = asked.unwrap_or(ROUNDS);
    let seed = fastrand::u64(..);
    say(&format!("seed {seed}\n"));
    let mut rng = Rng::with_seed(seed);
    let file = tradebook(0, ROWS);
    let mut program = start(scene, engine);
    let mut client = program.client();
    let new = client.account("register", "kill@example.com", "nine green parrots");
    let auth = bearer(&new.field("access_token"));
    let mut whole = 0;
    let mut live = 0;
    let mut cut = 0;
    let mut round = 0;
    while round < rounds || cut == 0 && round < LATE_ROUNDS * rounds {
        round += 1;
        // Killed once so many rows are stored, mostly in the middle of writing or removing them; or
        // after the answer of the preview, of its confirmation, or of the undo.
        let mut rows = rng.i64(0..ROWS as i64);
        let mut answered = Some(rng.u8(0..=3)).filter(|answers| *answers > 0);
        if round > rounds {
            // On a busy machine each kill may have come late, after all was written: now as early
            // as can be.
            rows = 0;
            answered = None;
        }
        let address = program.address.clone();
        std::thread::scope(|scope| {
            let comes = scope.spawn(|| come_and_go(&address, &auth, &file, answered));
            if answered.is_none() {
                until("some rows", || engine.stored() > rows);
                program.kill();
            }
            comes.join().unwrap();
        });
        if answered.is_some() {
            program.kill();
        }
        let left = engine.stored();
        cut += usize::from(left > 0 && left < ROWS as i64);
        program = start(scene, engine);
        let mut client = program.client();
        let trades = client
            .request("GET", &format!("{TRADES}.csv"), &auth)
            .with_status(200);
        let lines = trades.text().lines().count() - 1;
        assert!(lines == 0 || lines == ROWS, "{lines} trades of {ROWS}");
        live += usize::from(lines == ROWS);
        // What was answered is so.
        assert!(answered.is_none_or(|answers| (lines == ROWS) == (answers == 2)), "{answered:?}");
        let imports = client.request("GET", IMPORTS, &auth).json();
        let imports = imports["imports"].as_array().unwrap();
        assert!(answered != Some(1) || imports.len() == 1, "the preview is gone: {imports:?}");
        for import in imports {
            assert_eq!(import["rows"].as_u64(), Some(ROWS as u64), "{imports:?}");
            let is_live = import["state"] == "live";
            assert!(!is_live || lines == ROWS, "{imports:?}");
            let id = import["id"].as_i64().unwrap();
            client
                .request("DELETE", &format!("{IMPORTS}/{id}"), &auth)
                .with_status(204);
            whole += 1;
        }
    }
    say(&format!(
        "{round} kills: {whole} whole, {live} confirmed, {cut} in the middle\n"
    ));
    assert!(cut > 0, "no kill was in the middle");
}
