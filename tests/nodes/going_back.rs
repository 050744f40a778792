//! Tests in which the database of several nodes goes back in time, while they run and while they
//! are stopped; and a node with another secret.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bhav::app::App;
use bhav::base::Clock;
use bhav::config::Config;
use bhav::ops::Exit;
use bhav::store::settings::StoreUrl;

use super::pair::ask;
use crate::accounts::keys::made;
use crate::storage::going_back::{id_in, status};
use crate::support::postgres::{self, Server};
use crate::support::{Scene, Service, TRADING, bearer, bhav, run, state_flag, until};

pub const PASSWORD: &str = "nine green parrots";
const SECRET: &str = "a key that all the nodes know as they must";

/// A database of its own, whose nodes keep their state over restarts.
struct Shared {
    server: &'static Server,
    scene: Scene,
    config: Config,
    /// Name of the database and of its owner.
    name: String,
    states: [tempfile::TempDir; 2],
}

impl Shared {
    fn make() -> Option<Self> {
        let server = postgres::server()?;
        let name = server.fresh_role();
        server
            .execute("bhav", &format!("CREATE DATABASE {name} OWNER {name}"))
            .unwrap();
        let scene = Scene::at(TRADING);
        let mut config = scene.config();
        let url = server
            .url(&name)
            .replace("/postgres?", &format!("/{name}?"));
        config.store.url = Some(StoreUrl::parse(&url).unwrap());
        config.auth.jwt_secret = Some(SECRET.into());
        let states = [(); 2].map(|()| tempfile::tempdir().unwrap());
        Some(Self {
            server,
            scene,
            config,
            name,
            states,
        })
    }

    fn settings(&self, node: usize) -> Config {
        let mut config = self.config.clone();
        config.state_dir = self.states[node].path().into();
        config.nodes.name = Some(format!("node{node}"));
        config
    }

    fn node(&self, node: usize) -> Service {
        self.scene.start_with(&self.settings(node))
    }

    fn nodes(&self) -> [Service; 2] {
        [self.node(0), self.node(1)]
    }

    /// Runs statements in the database.
    fn execute(&self, database: &str, statements: &str) {
        let mut psql = self.server.tool("psql", "bhav", database);
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", statements]);
        succeed(&mut psql);
    }

    /// Copies the database, like a standby that lacks later commits.
    fn copy(&self) {
        let (name, end) = (&self.name, self.end_all(&self.name));
        self.server
            .execute("bhav", &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
            .unwrap();
        self.server.execute("bhav", &end).unwrap();
        until("no connection", || {
            let made = format!("CREATE DATABASE {name}_standby TEMPLATE {name} OWNER {name}");
            self.server.execute("bhav", &made).is_ok()
        });
        self.server
            .execute("bhav", &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
            .unwrap();
    }

    fn end_all(&self, database: &str) -> String {
        format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
        )
    }

    /// Renames the standby to the database, and marks it as the same place.
    fn promote(&self) {
        let name = &self.name;
        let standby = format!("{name}_standby");
        self.execute(&standby, "SET search_path = public; UPDATE identity SET place = own_place()");
        let rename = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false");
        self.server.execute("bhav", &rename).unwrap();
        self.server.execute("bhav", &self.end_all(name)).unwrap();
        until("the old one's name", || {
            let rename = format!("ALTER DATABASE {name} RENAME TO {name}_lost");
            self.server.execute("bhav", &rename).is_ok()
        });
        let rename = format!("ALTER DATABASE {standby} RENAME TO {name}");
        self.server.execute("bhav", &rename).unwrap();
    }
}

fn stop(nodes: [Service; 2]) {
    for node in nodes {
        node.stop();
    }
}

fn succeed(command: &mut Command) {
    let ran = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {said}");
}

fn jti(token: &str) -> String {
    let claims = BASE64_URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1).unwrap())
        .unwrap();
    let claims = String::from_utf8(claims).unwrap();
    claims
        .split("\"jti\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned()
}

fn register(node: &Service, names: &[&str]) -> Vec<String> {
    // Repeated if the connections have just been ended.
    let registered = |name: &&str| {
        let body = format!(r#"{{"email":"{name}@example.com","password":"{PASSWORD}"}}"#);
        until("a registration", || {
            let answer = node.post("/api/auth/register", "", &body);
            (answer.status == 201).then(|| answer.field("access_token"))
        })
    };
    names.iter().map(registered).collect()
}

/// Checks that the old tokens stay refused at each node while new accounts get their accounts' ids.
pub fn stay_closed(nodes: &[&Service; 2], old: &[String]) {
    let refused = |token: &String| nodes.iter().all(|node| status(node, token) == 401);
    until("every old token's end", || old.iter().all(refused));
    let names = ["p", "q", "r", "s", "t"];
    let new = register(nodes[0], &names[..old.len() + 1]);
    let ids: Vec<String> = new.iter().map(|token| id_in(token)).collect();
    assert!(
        old.iter().any(|token| ids.contains(&id_in(token))),
        "an id is given again: {ids:?}"
    );
    for node in nodes {
        assert!(new.iter().all(|token| status(node, token) == 200));
    }
    assert!(old.iter().all(refused));
}

#[test]
fn a_standby_that_lacks_commits_ends_the_tokens_of_what_it_lacks() {
    let Some(shared) = Shared::make() else { return };
    let nodes = shared.nodes();
    let kept = register(&nodes[0], &["kept"]).remove(0);
    assert!(nodes.iter().all(|node| status(node, &kept) == 200));
    shared.copy();
    until("the database", || nodes.iter().all(|node| node.health()["database"] == "ok"));
    let lost = register(&nodes[0], &["a", "b", "c"]);
    until("all changes", || {
        nodes
            .iter()
            .all(|node| lost.iter().all(|token| status(node, token) == 200))
    });
    until("that they were read", || nodes.iter().all(|node| applied(node) == 4));
    // A node that reads late finds the same numbers for other changes.
    let ended = jti(&kept);
    shared.execute(
        &format!("{}_standby", shared.name),
        &format!(
            "SET search_path = public; INSERT INTO revoked_tokens VALUES ('{ended}', \
             9000000000000), ('x', 9000000000000), ('y', 9000000000000)"
        ),
    );
    shared.promote();
    until("the logout", || nodes.iter().all(|node| status(node, &kept) == 401));
    stay_closed(&nodes.each_ref(), &lost);
    stop(nodes);
}

fn applied(node: &Service) -> i64 {
    use sonic_rs::JsonValueTrait;
    node.health()["changes"]["applied"]
        .as_i64()
        .unwrap_or_default()
}

#[test]
fn a_database_that_went_back_while_all_nodes_were_stopped_is_seen_at_the_start() {
    let Some(shared) = Shared::make() else { return };
    let nodes = shared.nodes();
    register(&nodes[0], &["kept"]);
    shared.copy();
    until("the database", || nodes.iter().all(|node| node.health()["database"] == "ok"));
    let kept = log_in(&nodes[0], "kept");
    let key = made(&nodes[0], &bearer(&kept), r#""journal:read""#, "").1;
    let lost = register(&nodes[0], &["a"]);
    until("that they were read", || nodes.iter().all(|node| applied(node) == 3));
    stop(nodes);
    shared.promote();
    let nodes = shared.nodes();
    for ended in [&kept, &key] {
        assert!(
            nodes.iter().all(|node| status(node, ended) == 401),
            "nobody knows what it ended"
        );
    }
    stay_closed(&nodes.each_ref(), &lost);
    stop(nodes);
}

pub fn log_in(node: &Service, name: &str) -> String {
    let body = format!(r#"{{"email":"{name}@example.com","password":"{PASSWORD}"}}"#);
    // Repeated if the connections have just been ended.
    until("a login", || {
        let answer = node.post("/api/auth/login", "", &body);
        (answer.status == 200).then(|| answer.field("access_token"))
    })
}

/// Dumps, registers, stops the nodes, restores the dump, and starts them.
fn by_a_dump(dump: impl Fn(&Shared, &Path), restore: impl Fn(&Shared, &Path)) {
    let Some(shared) = Shared::make() else { return };
    let file = tempfile::NamedTempFile::new().unwrap();
    let nodes = shared.nodes();
    let first = register(&nodes[0], &["first"]);
    let key = made(&nodes[0], &bearer(&first[0]), r#""journal:read""#, "").1;
    assert!(nodes.iter().all(|node| status(node, &key) == 200));
    dump(&shared, file.path());
    let lost = register(&nodes[1], &["alice"]);
    stop(nodes);
    restore(&shared, file.path());
    let nodes = shared.nodes();
    assert!(
        nodes
            .iter()
            .all(|node| [&first[0], &key].map(|it| status(node, it)) == [401, 401])
    );
    stay_closed(&nodes.each_ref(), &lost);
    stop(nodes);
}

#[test]
fn a_dump_that_replaces_every_table_ends_the_tokens_of_before() {
    by_a_dump(
        |shared, file| {
            let mut dump = shared.server.tool("pg_dump", &shared.name, &shared.name);
            dump.args(["--clean", "--if-exists"])
                .stdout(File::create(file).unwrap());
            succeed(&mut dump);
        },
        |shared, file| {
            let mut restore = shared.server.tool("psql", &shared.name, &shared.name);
            succeed(
                restore
                    .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"])
                    .arg(file),
            );
        },
    );
}

#[test]
fn a_database_that_is_made_again_of_a_dump_ends_the_tokens_of_before() {
    by_a_dump(
        |shared, file| {
            let mut dump = shared.server.tool("pg_dump", &shared.name, &shared.name);
            dump.arg("-Fc").stdout(File::create(file).unwrap());
            succeed(&mut dump);
        },
        |shared, file| {
            let name = &shared.name;
            until("the nodes' connections to end", || {
                shared
                    .server
                    .execute("bhav", &format!("DROP DATABASE IF EXISTS {name}"))
                    .is_ok()
            });
            let made = format!("CREATE DATABASE {name} OWNER {name}");
            shared.server.execute("bhav", &made).unwrap();
            let mut restore = shared.server.tool("pg_restore", name, name);
            succeed(restore.arg(file));
        },
    );
}

#[test]
fn a_command_ends_every_login_beside_the_nodes() {
    let Some(shared) = Shared::make() else { return };
    let nodes = shared.nodes();
    let token = register(&nodes[0], &["a"]).remove(0);
    assert!(nodes.iter().all(|node| status(node, &token) == 200));
    let url = shared.config.store.url.as_ref().unwrap().to_string();
    let state = tempfile::tempdir().unwrap();
    let renew = |args: &[&str]| {
        run(bhav(args)
            .arg(state_flag(state.path()))
            .env("BHAV_STORE_URL", &url))
    };
    assert_eq!(renew(&["renew-identity"]).code, Some(64), "nobody is there to be asked");
    assert!(nodes.iter().all(|node| status(node, &token) == 200));
    renew(&["renew-identity", "--yes"]).with_code(0);
    until("the command", || nodes.iter().all(|node| status(node, &token) == 401));
    let again = log_in(&nodes[1], "a");
    until("one key at both", || nodes.iter().all(|node| status(node, &again) == 200));
    stop(nodes);
}

#[test]
fn a_node_with_another_secret_does_not_start_and_a_new_one_goes_round() {
    const NEW: &str = "another key which all the nodes get one by one";
    let Some(shared) = Shared::make() else { return };
    let settings = |node: usize, secret: &str, previous: Option<&str>| {
        let mut config = shared.settings(node);
        config.auth.jwt_secret = Some(secret.into());
        config.auth.jwt_previous_secrets = previous.map(Into::into);
        config
    };
    let first = shared.node(0);
    let token = register(&first, &["a"]).remove(0);
    let Err(error) = App::start(&settings(1, NEW, None), &Clock::system()) else {
        panic!("a node with another secret starts");
    };
    assert_eq!(error.exit(), Exit::Usage);
    let said = error.to_string();
    let shown = |word: &str| word.len() > 8 && word[..8].bytes().all(|b| b.is_ascii_hexdigit());
    assert_eq!(said.split(' ').filter(|word| shown(word)).count(), 2, "{said}");
    assert!(!said.contains(NEW) && !said.contains(SECRET), "{said}");
    // First every node learns the new one, then each signs with it in turn.
    first.stop();
    let first = shared.scene.start_with(&settings(0, SECRET, Some(NEW)));
    let second = shared.scene.start_with(&settings(1, NEW, Some(SECRET)));
    let newer = log_in(&second, "a");
    for node in [&first, &second] {
        assert_eq!((status(node, &token), status(node, &newer)), (200, 200));
    }
    first.stop();
    let first = shared.scene.start_with(&settings(0, SECRET, Some(NEW)));
    assert_eq!(status(&first, &newer), 200, "a node that restarts meanwhile");
    first.stop();
    second.stop();
    let first = shared.scene.start_with(&settings(0, NEW, Some(SECRET)));
    assert_eq!((status(&first, &token), status(&first, &newer)), (200, 200));
    assert_eq!(ask(&first, "POST", "/api/auth/logout", &token, "").status, 200);
    first.stop();
    assert!(
        App::start(&settings(1, SECRET, None), &Clock::system()).is_err(),
        "the old one is over"
    );
}
