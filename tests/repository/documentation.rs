//! Statements of the documents that a machine can check: commands, links, files, settings and error
//! codes that exist, pictures, and figures from the load test.

use std::collections::BTreeSet;
use std::fs;

use bhav::config::Config;
use bhav::config::secrets::SECRETS;
use bhav::config::settings::{REMOVED, SETTINGS};
use clap::error::ErrorKind;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::support::source::{below, expect_none, root};

/// All pages written by people. Programs write `docs/broker-replies.md` and the results of the load
/// test.
const PAGES: [&str; 22] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/api.md",
    "docs/brokers.md",
    "docs/clients.md",
    "docs/dashboard.md",
    "docs/feeds.md",
    "docs/ledger.md",
    "docs/life-of-a-request.md",
    "docs/nodes.md",
    "docs/operating.md",
    "docs/portfolio.md",
    "docs/proxies.md",
    "docs/signals.md",
    "docs/storage.md",
    "examples/two-nodes/README.md",
    "loadtest/README.md",
    "tests/ledger/files/README.md",
    "web/README.md",
];

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Lines of the blocks of shell commands, comments and continued lines resolved.
fn shell_lines(text: &str) -> Vec<String> {
    let blocks = text
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let joined: String = blocks.collect::<String>().replace("\\\n", " ");
    let joined = joined.replace("cargo run --release -- ", "bhav ");
    joined
        .lines()
        .map(|line| line.split(" #").next().unwrap().trim().to_owned())
        .collect()
}

/// The words of each `bhav` command of a line, after its environment variables.
fn commands(line: &str) -> Vec<Vec<String>> {
    let parts = line.split(['|', ';']).flat_map(|part| part.split("&&"));
    let words = parts.map(|part| {
        let words = part.split_whitespace().skip_while(|word| {
            let name = word.split('=').next().unwrap();
            word.contains('=') && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
        });
        words.map(str::to_owned).collect::<Vec<_>>()
    });
    words
        .filter(|words| words.first().is_some_and(|word| word == "bhav"))
        .collect()
}

#[test]
fn commands_that_are_shown_can_be_typed() {
    let mut seen = BTreeSet::new();
    for page in PAGES {
        for line in shell_lines(&read(page)) {
            for words in commands(&line) {
                let parsed = bhav::cli::command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{page}: {line}: {}", parsed.unwrap_err());
                seen.insert(words[1].clone());
            }
        }
    }
    // In running text a command may lack its arguments, as in `bhav backup`.
    for page in PAGES {
        let text = read(page);
        let spans = text.split('`').skip(1).step_by(2);
        for span in spans.filter(|span| span.starts_with("bhav ") && !span.contains(['|', '\n'])) {
            let words = span.split_whitespace().take_while(|word| *word != ">");
            let parsed = bhav::cli::command().try_get_matches_from(words);
            let unknown = [ErrorKind::InvalidSubcommand, ErrorKind::UnknownArgument];
            let known = parsed.map_or_else(|error| !unknown.contains(&error.kind()), |_| true);
            assert!(known, "{page}: {span}");
        }
    }
    for command in [
        "serve", "demo", "token", "status", "backup", "restore", "sim",
    ] {
        assert!(seen.contains(command), "no page shows bhav {command}: {seen:?}");
    }
}

#[test]
fn every_page_is_checked_here() {
    let others = [
        "docs/broker-replies.md",
        "loadtest/RESULTS.md",
        "fuzz/README.md",
    ];
    let is_page = |path: &str| {
        path.ends_with(".md") && !others.contains(&path) && !path.starts_with("tests/fixtures/")
    };
    let files = below("").into_iter().map(|source| source.path);
    let pages: BTreeSet<String> = files.filter(|path| is_page(path)).collect();
    assert_eq!(pages, PAGES.map(str::to_owned).into());
}

/// The anchor of a heading, as usual renderers make it.
fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
    heading
        .to_lowercase()
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#').trim_start()))
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let mut links = 0;
    for page in PAGES {
        let text = read(page);
        let folder = root().join(page).parent().unwrap().to_owned();
        for target in text
            .split("](")
            .skip(1)
            .map(|rest| rest.split(')').next().unwrap())
        {
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() {
                root().join(page)
            } else {
                folder.join(file)
            };
            assert!(file.exists(), "{page}: {target}");
            if !heading.is_empty() {
                let text = fs::read_to_string(&file).unwrap();
                assert!(anchors(&text).contains(heading), "{page}: no such heading: {target}");
            }
            links += 1;
        }
    }
    assert!(links >= 40, "{links}");
}

/// Folders of the repository's root that documents name.
const FOLDERS: [&str; 12] = [
    ".ci",
    "benches",
    "docs",
    "examples",
    "fuzz",
    "loadtest",
    "monitoring",
    "packaging",
    "sql",
    "src",
    "systemd",
    "tests",
];

/// Whether a word of a document means a file or folder of the repository.
fn is_path(word: &str, modules: &BTreeSet<String>) -> bool {
    let (first, rest) = word.split_once('/').unwrap_or(("", word));
    let of_ours = FOLDERS.contains(&first) || modules.contains(first);
    (of_ours && !rest.is_empty()) || word.ends_with(".rs")
}

/// The words of a document that may be paths.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let part = |letter: char| letter.is_ascii_alphanumeric() || "_./-*{}:$".contains(letter);
    let words = text.split(move |letter: char| !part(letter));
    words.map(|word| word.trim_end_matches([':', '.']).trim_end_matches('/'))
}

/// The paths in `text` that do not exist. In a document they may be relative to the root, to `src`,
/// to `src/http`, or to the document.
fn missing_paths(page: &str, text: &str) -> Vec<String> {
    let src = root().join("src");
    let entries = fs::read_dir(&src).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.path().is_dir());
    let modules: BTreeSet<String> = folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let beside = root().join(page).parent().unwrap().to_owned();
    let bases = [root().to_owned(), src.clone(), src.join("http"), beside];
    let exists = |word: &str| {
        let named = |base: &std::path::PathBuf| {
            base.join(word).exists() || base.join(format!("{word}.rs")).exists()
        };
        bases.iter().any(named)
    };
    // Files that a run makes, and the name of a protocol.
    let is_made =
        |word: &str| word.contains("/target/") || ["fuzz/corpus/head", "http/1.1"].contains(&word);
    words(text)
        .filter(|word| is_path(word, &modules) && !word.contains(['*', '{', ':']))
        .filter(|word| !is_made(word) && !exists(word))
        .map(|word| format!("{page}: {word}"))
        .collect()
}

#[test]
fn files_that_are_named_exist() {
    let missing: Vec<String> = PAGES
        .iter()
        .flat_map(|page| missing_paths(page, &read(page)))
        .collect();
    expect_none(&missing);
    let bad =
        "See `src/none.rs`, `http/turn.rs`, (`warmers/quotes/poll`), tests/none and `GET /api/x`.";
    let found = missing_paths("README.md", bad);
    assert_eq!(
        found,
        ["src/none.rs", "http/turn.rs", "tests/none"].map(|p| format!("README.md: {p}"))
    );
}

/// The codes that members `code` of problems can have, anywhere in the API's document.
fn codes(document: &Value, found: &mut BTreeSet<String>) {
    if let Some(members) = document.as_object() {
        for (name, member) in members.iter() {
            if name == "code" {
                let listed = member["enum"]
                    .as_array()
                    .into_iter()
                    .flat_map(|codes| codes.iter());
                let codes = listed.chain(member.get("const"));
                // Those of JSON-RPC are numbers.
                found.extend(codes.filter_map(|code| code.as_str().map(str::to_owned)));
            }
            codes(member, found);
        }
    }
    for member in document
        .as_array()
        .into_iter()
        .flat_map(|members| members.iter())
    {
        codes(member, found);
    }
}

#[test]
fn the_page_on_the_api_explains_every_error_code() {
    let mut given = BTreeSet::new();
    let text = read("src/api/openapi.json");
    codes(&sonic_rs::from_str(&text).unwrap(), &mut given);
    assert!(given.len() > 40, "{given:?}");
    // This code is described once for all paths.
    given.insert("method_not_allowed".to_owned());
    let page = read("docs/api.md");
    let section = page
        .split("\n## Errors\n")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let rows = section.lines().filter_map(|line| line.split('|').nth(2));
    let explained = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned));
    assert_eq!(explained.collect::<BTreeSet<_>>(), given);
}

#[test]
fn settings_that_are_named_exist() {
    // Variables of the environment and of the tests.
    let others = [
        "BHAV_ENV_FILE",
        "BHAV_BLESS",
        "BHAV_CHAOS_S",
        "BHAV_CHAOS_SEED",
        "BHAV_DEMO_DAYS",
    ];
    for page in PAGES {
        let text = read(page);
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for word in words {
            let secret = || {
                let bare = word.strip_suffix("_FILE").unwrap_or(word);
                SECRETS.iter().any(|secret| secret.name == bare)
            };
            let known = match word {
                word if word.starts_with("BHAV_") => {
                    let was = page == "CHANGELOG.md" && REMOVED.contains(&word);
                    was || SETTINGS.iter().any(|setting| setting.name == word)
                        || others.contains(&word)
                        || word == "BHAV_"
                        || secret()
                }
                "BROKERA_" | "BROKERB_" | "JWT_" => true,
                word if word.starts_with("BROKERA_") || word.starts_with("BROKERB_") => secret(),
                word if word.starts_with("JWT_") => secret(),
                _ => true,
            };
            assert!(known, "{page}: {word} is no setting");
        }
    }
}

/// The cells of the row of `section` that begins with `keys`, trimmed.
fn row(results: &str, section: &str, keys: &[&str]) -> Vec<String> {
    let heading = format!("# {section}");
    let from = results
        .split(&heading)
        .nth(1)
        .unwrap_or_else(|| panic!("no section {section}"));
    let rows = from.lines().take_while(|line| !line.starts_with('#'));
    let cells = |line: &str| {
        line.split('|')
            .skip(1)
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    rows.map(cells)
        .find(|cells| {
            cells.len() > keys.len() && keys.iter().zip(cells).all(|(key, cell)| key == cell)
        })
        .unwrap_or_else(|| panic!("no row {keys:?} in {section}"))
}

/// The number before `unit` in a text.
fn number_before(text: &str, unit: &str) -> f64 {
    let before = text.split(unit).next().unwrap().trim_end();
    before
        .split([' ', '\n'])
        .next_back()
        .unwrap()
        .parse()
        .unwrap()
}

/// Rounds to three digits: `131363` is `131,000`.
fn rounded(number: &str) -> String {
    let number: f64 = number.parse().unwrap();
    let step = 10f64.powf(number.log10().floor() - 2.0);
    let digits = format!("{:.0}", (number / step).round() * step);
    let (thousands, rest) = digits.split_at(digits.len() - 3);
    format!("{thousands},{rest}")
}

#[test]
fn figures_for_operators_are_those_of_the_load_test() {
    let results = read("loadtest/RESULTS.md");
    let page = read("docs/operating.md");
    let saturated =
        |connections| rounded(&row(&results, "Snapshot at saturation", &["bhav", connections])[2]);
    let cpu: f64 = row(&results, "Snapshot at 10000 req/s, open loop", &["bhav", "64"])[2]
        .parse()
        .unwrap();
    let idle = row(&results, "10000 idle keep-alive connections", &["bhav"]);
    let (per_connection, start): (f64, f64) = (idle[1].parse().unwrap(), idle[3].parse().unwrap());
    let crowd: f64 = row(&results, "100000 users next to 100", &["100000", "kept"])[6]
        .parse()
        .unwrap();
    let logins: f64 =
        row(&results, "Snapshot at 10000 req/s on 64 connections, under", &["default"])[10]
            .parse()
            .unwrap();
    let writes = rounded(&row(&results, "Acknowledged journal writes", &["default"])[1]);
    let database = number_before(results.split("store and has ").nth(1).unwrap(), " MiB");
    let evening = results.split("Revaluation at the close: ").nth(1).unwrap();
    let close = number_before(evening, " s from start");
    let close_cpu = number_before(evening, " s of CPU");
    let close_rows = number_before(evening, " rows in") / 1e6;
    let disk = number_before(results.split("append of 4 KiB takes ").nth(1).unwrap(), " µs");
    let phrases = [
        format!("{} a second on 64 connections, {} on 512", saturated("64"), saturated("512")),
        format!("{cpu:.1} µs at 10,000 a second"),
        format!("{start:.0} MiB at the start, {per_connection:.1} KiB more per idle connection"),
        format!("{crowd:.0} MiB with 100,000 accounts"),
        format!("{database:.0} MiB for 100,000 accounts"),
        format!("{logins:.0} a second on one thread"),
        format!("100,000 portfolios with {close_rows:.1} million rows in {close:.0} s"),
        format!("{close_cpu:.0} s of one core"),
        format!("{writes} acknowledged a second"),
        format!("syncs 4 KiB in {disk:.0} µs"),
    ];
    let missing: Vec<&String> = phrases
        .iter()
        .filter(|&phrase| !page.contains(phrase))
        .collect();
    assert!(missing.is_empty(), "docs/operating.md does not say: {missing:#?}");
}

#[test]
fn figures_of_limits_that_nobody_sets_are_those_of_the_program() {
    let Config {
        http,
        auth,
        store,
        cache,
        ..
    } = Config::default();
    let unread_s = http.unread_output_timeout_ms / 1_000;
    let records = rounded(&cache.l2_records_max.to_string());
    let phrases = [
        ("docs/storage.md", format!("up to {} writes", store.writes_per_commit_max)),
        ("docs/storage.md", format!("beyond {records} records of a kind")),
        ("docs/operating.md", format!("in a queue of {}", auth.crypto_queue_max)),
        ("docs/api.md", format!("time to read an event | 4 KiB; {unread_s} s |")),
        ("docs/life-of-a-request.md", format!("After {unread_s} s it is")),
    ];
    for (page, phrase) in phrases {
        assert!(read(page).replace('\n', " ").contains(&phrase), "{page} does not say: {phrase}");
    }
    assert_eq!(cache.demand_ttl_ms, 60_000);
    assert!(read("docs/feeds.md").contains("what clients asked for in the last minute."));
}

fn kib(bytes: usize) -> String {
    format!("{} KiB", bytes / 1024)
}

fn seconds(ms: u64) -> String {
    format!("{} s", ms as f64 / 1e3)
}

/// The rows of the table of limits in `docs/api.md`.
fn figures_of_api(config: &Config) -> [String; 8] {
    let Config {
        http,
        auth,
        upstream,
        store,
        ..
    } = config;
    let head = kib(http.head_bytes_max);
    let body = kib(http.body_bytes_max);
    let waits = [
        http.head_timeout_ms,
        http.body_timeout_ms,
        http.idle_timeout_ms,
    ]
    .map(seconds);
    let all = rounded(&http.connections_max.to_string());
    let each = rounded(&http.connections_per_address_max.to_string());
    let per_minute = |attempts: u32| format!("| {attempts} a minute |");
    [
        format!(
            "| request target; request line and headers; header lines | 8 KiB; {head}; {} |",
            http.headers_max
        ),
        format!("| body | {body} |"),
        format!(
            "| password attempts, by account and by address {}",
            per_minute(auth.login_attempts_per_minute)
        ),
        format!(
            "| new accounts, by address {}",
            per_minute(auth.registration_attempts_per_minute)
        ),
        format!(
            "| syncs of a user, both brokers together {}",
            per_minute(upstream.sync_attempts_per_minute)
        ),
        format!("| {} at once, ten a second", store.writes_per_user_per_minute),
        format!("| connections; from one address (of IPv6 one /64) | {all}; {each} |"),
        format!("| time for a head; a body; idle | {} |", waits.join("; ")),
    ]
}

/// Phrases of `docs/feeds.md`.
fn figures_of_feeds(config: &Config) -> [String; 4] {
    let Config {
        upstream,
        broker_a,
        public,
        ..
    } = config;
    let breaker = format!(
        "opens after {} failures in a row, for {} at first, doubling up\nto {}.",
        ["no", "one", "two", "three"][upstream.breaker_failures as usize],
        seconds(upstream.breaker_open_ms),
        seconds(upstream.breaker_open_max_ms)
    );
    let quotes = seconds(broker_a.quote_interval_ms);
    let batches = seconds(public.batch_interval_ms);
    [
        format!("| {quotes} (`BHAV_BROKERA_QUOTE_INTERVAL_MS`) | {batches} (`BHAV_PUBLIC_BATCH"),
        format!("2 × {quotes} + 1.5 s"),
        format!("2 × {batches} + 7 s"),
        breaker,
    ]
}

/// Phrases about defaults, generated from the defaults.
#[test]
fn figures_of_limits_are_the_defaults() {
    let config = Config::default();
    let api = figures_of_api(&config);
    let feeds = figures_of_feeds(&config);
    let waits = seconds(config.cache.miss_wait_ms);
    let life = [format!("`BHAV_CACHE_MISS_WAIT_MS` ({waits} by default)")];
    let pages: [(&str, &[String]); 3] = [
        ("docs/api.md", &api),
        ("docs/feeds.md", &feeds),
        ("docs/life-of-a-request.md", &life),
    ];
    for (page, phrases) in pages {
        // Line breaks do not matter.
        let text = read(page).replace('\n', " ");
        for phrase in phrases {
            assert!(text.contains(&phrase.replace('\n', " ")), "{page} does not say: {phrase}");
        }
    }
}
