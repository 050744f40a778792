//! The budget of the code base: upper bounds on everything that a reader has to find a way through.
//! Each bound is a little above the present count. Raising one takes a line in a commit that says
//! why.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::source::{Source, below, expect_none, root, rust, word};

/// Lines of product code by room, and its files.
const ROOMS: &[(&str, usize, usize)] = &[
    ("admin", 945, 4),
    // With API keys: their routes, and the scope of each route. With assistants: `/mcp`. And the
    // day's change, names and allocation of holdings, and the week of the trend. With watch lists:
    // their routes, and lists of objects in a body.
    ("api", 5580, 25),
    // With the demo for strangers, which makes each day's accounts and follows it by the next, and
    // the list of sectors at start and reload.
    ("app", 1955, 8),
    // With API keys: their form, how a request with one is judged, and how one is recognised in few
    // instructions.
    ("auth", 2700, 10),
    // With API keys: scopes. With the day's range.
    ("base", 1055, 14),
    // With the day's range of each source, believed or not.
    ("brokers", 5500, 29),
    // With movers, which are made once a second, and the demand of views, both of which were in
    // `api`.
    ("cache", 1990, 10),
    // With API keys: `bhav key`.
    ("cli", 3670, 17),
    // With the names of removed settings, which a file of before may still have.
    ("config", 1665, 10),
    // With the threads that write streams, which thereby need no coroutine each, and compressors
    // that are kept.
    // A request id like a key is not repeated, and `/mcp` takes over the answers of others. What a
    // request of the snapshot runs is inlined, by an attribute, which is a line.
    ("http", 4880, 23),
    ("lib", 50, 1),
    ("main", 30, 1),
    // With the sectors of companies, from an operator's list too.
    ("market", 1445, 4),
    ("nodes", 3690, 20),
    ("ops", 905, 8),
    ("portfolio", 1105, 7),
    // With the stage on which tests play days from a seed, the timed stream of two clients, epoll
    // for the writers of streams, the outcomes of jobs, and the wait before the next try, which the
    // database and the shared server have in common. A closing lane is told of its threads' ends.
    ("rt", 1425, 13),
    ("signals", 1450, 8),
    // With the simulator that needs no socket.
    ("sim", 4020, 17),
    // With API keys: requests with one, by result.
    ("status", 440, 3),
    // With API keys: a table, its statements and rows. Two files more, without which files of the
    // store would import each other in a circle: small files on disk, and the URL of a server. With
    // watch lists: a table, its statements and row.
    ("store", 6160, 33),
    // With API keys: the list, and their part of health. With watch lists.
    ("views", 1570, 10),
    // With candles that are only drawn.
    ("warmers", 5190, 23),
    // With the notice of that demo. With the service worker.
    ("web", 250, 2),
];

/// Lines of product code below which a file is small.
const SMALL_LINES: usize = 60;
/// Most small files, without `mod.rs`, `lib.rs` and `main.rs`.
const SMALL_FILES_MAX: usize = 16;
const SQL_FILES_MAX: usize = 30;
/// Items declared plain `pub`. An item used only in this crate is `pub(crate)`.
const PLAIN_PUB_MAX: usize = 850;
const CRATES_MAX: usize = 390;
/// Settings, including the files of secrets.
// With the list of sectors, and how many symbols beyond the universe have candles, which is 0 where
// a feed's calls are dear.
const SETTINGS_MAX: usize = 99;
const METRICS_MAX: usize = 107;
/// Places that start an OS thread.
const THREADS_MAX: usize = 26;

/// The files of the product, without those that are tests.
fn product() -> Vec<Source> {
    let is_test = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.trim_end_matches(".rs");
        ["tests", "testing"].contains(&stem)
            || stem.ends_with("_tests")
            || stem.ends_with("_model")
            || stem.contains("test_server")
            || path.contains("/conformance/")
    };
    rust(&["src"]).into_iter().filter(|source| !is_test(&source.path)).collect()
}

fn room(path: &str) -> &str {
    word(path.trim_start_matches("src/"))
}

fn is_root(source: &Source) -> bool {
    ["/mod.rs", "/lib.rs", "/main.rs"].iter().any(|name| source.path.ends_with(name))
}

fn expect_at_most(what: &str, found: usize, most: usize) {
    assert!(found <= most, "{what}: {found}, at most {most}: take one away, or say why not");
}

#[test]
fn every_room_keeps_to_its_budget() {
    let mut rooms: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for source in product() {
        let (lines, files) = rooms.entry(room(&source.path).to_owned()).or_default();
        *lines += source.code_lines().len();
        *files += 1;
    }
    let mut faults = Vec::new();
    for (name, (lines, files)) in &rooms {
        match ROOMS.iter().find(|(room, ..)| room == name) {
            None => faults.push(format!("{name}: a room without a budget")),
            Some((_, most, files_max)) if lines > most || files > files_max => {
                faults.push(format!(
                    "{name}: {lines} lines in {files}, at most {most} in {files_max}"
                ));
            }
            Some(_) => {}
        }
    }
    let gone = ROOMS.iter().filter(|(room, ..)| !rooms.contains_key(*room));
    faults.extend(gone.map(|(room, ..)| format!("{room}: no such room")));
    expect_none(&faults);
}

#[test]
fn a_small_file_has_more_than_one_reader() {
    let product = product();
    let code: Vec<(&Source, String)> =
        product.iter().map(|source| (source, source.code_lines().join("\n"))).collect();
    let is_small = |source: &&Source| !is_root(source) && source.code_lines().len() < SMALL_LINES;
    let small: Vec<&Source> = product.iter().filter(is_small).collect();
    expect_at_most("small files", small.len(), SMALL_FILES_MAX);
    let mut lonely = Vec::new();
    for source in small {
        let stem = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        let named = format!("{stem}::");
        let reads = |(other, text): &&(&Source, String)| {
            other.path != source.path
                && !is_root(other)
                && text.match_indices(&named).any(|(at, _)| {
                    let before = text[..at].chars().next_back();
                    !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
                })
        };
        let readers: Vec<&(&Source, String)> = code.iter().filter(reads).collect();
        if let [(only, _)] = readers.as_slice()
            && room(&only.path) == room(&source.path)
        {
            lonely.push(format!("{}: belongs into {}, its only reader", source.path, only.path));
        }
    }
    expect_none(&lonely);
}

#[test]
fn nothing_else_grows_unnoticed() {
    let product = product();
    let lines: Vec<&str> = product.iter().flat_map(Source::code_lines).collect();
    let public = |line: &&&str| {
        let item = line.trim_start().strip_prefix("pub ").map(word);
        let items = ["fn", "struct", "enum", "trait", "const", "type", "mod", "use", "static"];
        item.is_some_and(|item| items.contains(&item))
    };
    expect_at_most("`pub` items", lines.iter().filter(public).count(), PLAIN_PUB_MAX);
    let sql = below("sql").into_iter().filter(|source| source.path.ends_with(".sql"));
    expect_at_most("SQL files", sql.count(), SQL_FILES_MAX);
    let text = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let crates = text("Cargo.lock").matches("[[package]]").count();
    expect_at_most("crates in the lock", crates, CRATES_MAX);
    let names = text("systemd/bhav.env");
    let settings: BTreeSet<&str> = names
        .lines()
        .filter_map(|line| line.trim_start_matches(['#', ' ']).split_once('='))
        .map(|(name, _)| name)
        .filter(|name| ["BHAV_", "BROKER", "JWT_"].iter().any(|start| name.starts_with(start)))
        .collect();
    expect_at_most("settings", settings.len(), SETTINGS_MAX);
    let quoted = lines.iter().flat_map(|line| line.split('"').skip(1).step_by(2));
    let metrics: BTreeSet<&str> =
        quoted.filter(|text| text.starts_with("bhav_") && word(text) == *text).collect();
    expect_at_most("metrics", metrics.len(), METRICS_MAX);
    let threads = lines.iter().filter(|line| line.contains("threads::spawn("));
    expect_at_most("places that start a thread", threads.count(), THREADS_MAX);
}
