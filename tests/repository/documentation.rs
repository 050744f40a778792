//! What README and `docs/` say and a machine can check: commands that exist, links that lead
//! somewhere, names of settings, and figures that the load test gave.

use std::collections::BTreeSet;
use std::fs;

use bhav::config::secrets::SECRETS;
use bhav::config::settings::SETTINGS;
use clap::error::ErrorKind;

use crate::support::source::root;

const PAGES: [&str; 5] =
    ["README.md", "ARCHITECTURE.md", "docs/brokers.md", "docs/operating.md", "loadtest/README.md"];

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Lines of the blocks of shell commands, comments and continued lines resolved.
fn shell_lines(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let joined: String = blocks.collect::<String>().replace("\\\n", " ");
    let joined = joined.replace("cargo run --release -- ", "bhav ");
    joined.lines().map(|line| line.split(" #").next().unwrap().trim().to_owned()).collect()
}

/// The words of each `bhav` command of a line, behind what is set for it.
fn commands(line: &str) -> Vec<Vec<String>> {
    let parts = line.split(['|', ';']).flat_map(|part| part.split("&&"));
    let words = parts.map(|part| {
        let words = part.split_whitespace().skip_while(|word| {
            let name = word.split('=').next().unwrap();
            word.contains('=') && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
        });
        words.map(str::to_owned).collect::<Vec<_>>()
    });
    words.filter(|words| words.first().is_some_and(|word| word == "bhav")).collect()
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
    // In running text a command may be without what it needs, as in `bhav backup`.
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
    for command in ["serve", "demo", "token", "status", "backup", "restore", "signals", "sim"] {
        assert!(seen.contains(command), "no page shows bhav {command}: {seen:?}");
    }
}

#[test]
fn links_lead_somewhere() {
    let mut links = 0;
    for page in PAGES {
        let text = read(page);
        let folder = root().join(page).parent().unwrap().to_owned();
        for target in text.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap()) {
            if !target.is_empty() && !target.contains("://") {
                assert!(folder.join(target).exists(), "{page}: {target}");
                links += 1;
            }
        }
    }
    assert!(links >= 6, "{links}");
}

#[test]
fn settings_that_are_named_exist() {
    // Of the program's surroundings, and of the tests.
    let others = ["BHAV_ENV_FILE", "BHAV_BLESS"];
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
                    SETTINGS.iter().any(|setting| setting.name == word)
                        || others.contains(&word)
                        || word == "BHAV_"
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

/// The cells of the row of `section` that begins with these, without blanks.
fn row(results: &str, section: &str, keys: &[&str]) -> Vec<String> {
    let heading = format!("# {section}");
    let from = results.split(&heading).nth(1).unwrap_or_else(|| panic!("no section {section}"));
    let rows = from.lines().take_while(|line| !line.starts_with('#'));
    let cells =
        |line: &str| line.split('|').skip(1).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    rows.map(cells)
        .find(|cells| {
            cells.len() > keys.len() && keys.iter().zip(cells).all(|(key, cell)| key == cell)
        })
        .unwrap_or_else(|| panic!("no row {keys:?} in {section}"))
}

/// The number before `unit` in a text.
fn number_before(text: &str, unit: &str) -> f64 {
    let before = text.split(unit).next().unwrap().trim_end();
    before.split([' ', '\n']).next_back().unwrap().parse().unwrap()
}

/// To three digits: `131363` is `131,000`.
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
    let cpu: f64 =
        row(&results, "Snapshot at 10000 req/s, open loop", &["bhav", "64"])[2].parse().unwrap();
    let idle = row(&results, "10000 idle keep-alive connections", &["bhav"]);
    let (per_connection, start): (f64, f64) = (idle[1].parse().unwrap(), idle[3].parse().unwrap());
    let crowd: f64 =
        row(&results, "100000 users next to 100", &["100000", "kept"])[6].parse().unwrap();
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
    let missing: Vec<&String> = phrases.iter().filter(|&phrase| !page.contains(phrase)).collect();
    assert!(missing.is_empty(), "docs/operating.md does not say: {missing:#?}");
}
