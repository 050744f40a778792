//! The alerts and the dashboard in `monitoring/` use only metrics that exist, and all of them.

use std::collections::BTreeSet;

use bhav::store::backups;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::support::scrape::{BACKED_UP, SUCCEEDED, Scrape};
use crate::support::source::expect_made;
use crate::support::{Scene, TRADING};

const RULES: &str = include_str!("../../monitoring/bhav.rules.yml");
const RULE_TESTS: &str = include_str!("../../monitoring/bhav.rules.test.yml");
const OPERATING: &str = include_str!("../../docs/operating.md");
/// The head of the table of alerts.
const TABLE: &str = "| alert | what it says | what to do |\n|---|---|---|\n";
const DASHBOARD: &str = include_str!("../../monitoring/bhav.dashboard.json");

/// Words of a text that may be names of our metrics.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let ours = words.filter(|word| word.starts_with("bhav_") || word.starts_with("process_"));
    ours.map(str::to_owned).collect()
}

fn exposed() -> BTreeSet<String> {
    let scene = Scene::at(TRADING);
    backups::note(scene.state.path(), scene.clock.now_ms(), true).unwrap();
    let service = scene.start_with(&scene.watched());
    service.fresh_snapshot();
    let names = Scrape::until(&service, "a warmer's success and a look at the backup", |scrape| {
        scrape.0.contains_key(SUCCEEDED) && scrape.0.contains_key(BACKED_UP)
    })
    .names();
    service.stop();
    names
}

fn dashboard() -> Value {
    sonic_rs::from_str(DASHBOARD).unwrap()
}

#[test]
fn alerts_and_panels_name_what_is_exposed() {
    let exposed = exposed();
    for text in [RULES, RULE_TESTS, DASHBOARD] {
        let named = named(text);
        assert!(named.len() >= 8, "{named:?}");
        let unknown: Vec<_> = named.difference(&exposed).collect();
        assert!(unknown.is_empty(), "not exposed: {unknown:?}");
    }
    // Every exposed metric is on a panel; one part of a histogram is enough.
    let shown = named(DASHBOARD);
    let base = |name: &str| {
        let cut = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|part| name.strip_suffix(part));
        cut.unwrap_or(name).to_owned()
    };
    let shown: BTreeSet<String> = shown.iter().map(|name| base(name)).collect();
    let all: BTreeSet<String> = exposed.iter().map(|name| base(name)).collect();
    let hidden: Vec<_> = all.difference(&shown).collect();
    assert!(hidden.is_empty(), "on no panel: {hidden:?}");
}

/// One alert of the rules file.
struct Alert {
    name: &'static str,
    severity: &'static str,
    /// The summary with an ellipsis for each value that the alert fills in.
    summary: String,
    description: String,
}

fn alerts() -> Vec<Alert> {
    let alert = |text: &'static str| {
        let part = |start: &str, end: &str| {
            let rest = text
                .split_once(start)
                .unwrap_or_else(|| panic!("no {start} in {text}"))
                .1;
            rest.split_once(end).unwrap_or((rest, "")).0
        };
        assert!(text.contains("expr: "), "{text}");
        let mut summary = String::new();
        for (at, piece) in part("summary: \"", "\"\n").split("{{").enumerate() {
            let shown = if at == 0 {
                piece
            } else {
                piece.split_once("}}").unwrap().1
            };
            summary.push_str(if at == 0 { "" } else { "…" });
            summary.push_str(shown);
        }
        // A folded block, as deep as its lines; a comment or the next alert ends it.
        let folded = part("description: >-\n", "\n\n").lines();
        let folded = folded.take_while(|line| line.starts_with("            "));
        let description = folded.map(str::trim).collect::<Vec<_>>().join(" ");
        assert!(description.ends_with('.') || description.ends_with('?'), "{description}");
        Alert {
            name: text.split_once('\n').unwrap().0,
            severity: part("severity: ", "}"),
            summary,
            description,
        }
    };
    RULES.split("- alert: ").skip(1).map(alert).collect()
}

#[test]
fn the_page_on_operating_has_the_alerts_of_the_rules_file() {
    let alerts = alerts();
    assert_eq!(alerts.len(), RULES.matches("expr: ").count());
    let row = |alert: &Alert| {
        let Alert {
            name,
            severity,
            summary,
            description,
        } = alert;
        assert!(!format!("{summary}{description}").contains('|'), "{name} breaks the table");
        format!("| `{name}`, {severity} | {summary} | {description} |\n")
    };
    let rows: String = alerts.iter().map(row).collect();
    let (before, _) = OPERATING
        .split_once(TABLE)
        .expect("the table of alerts ends the page");
    expect_made("docs/operating.md", &format!("{before}{TABLE}{rows}"));
}

#[test]
fn the_dashboard_takes_its_data_source_from_a_variable() {
    let dashboard = dashboard();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let names: Vec<&str> = variables
        .iter()
        .map(|of| of["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["datasource", "job", "instance"]);
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap().iter() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "two panels of one id");
        if panel["type"] == "row" {
            continue;
        }
        let title = panel["title"].as_str().unwrap();
        assert!(!panel["description"].as_str().unwrap().is_empty(), "{title}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{title}");
        for target in targets.iter() {
            let expr = target["expr"].as_str().unwrap();
            assert!(expr.contains(r#"job=~"$job",instance=~"$instance""#), "{title}: {expr}");
        }
    }
    assert!(ids.len() > 25, "{} panels", ids.len());
}
