//! Rules of the dashboard's code: its functions are short, and its folders depend on each other in
//! one direction.
//!
//! The list below holds the exceptions and may only shrink, as those of `tidy`.

use std::path::Path;

use crate::support::source::{Source, below, expect_none};

const FUNCTION_LINES_MAX: usize = 70;

/// Functions (`file:how it begins`) that may be longer, up to the given number of lines.
const LONG_FUNCTIONS: &[(&str, usize)] = &[];

/// Which folders the modules of a folder may import from, besides their own.
const FOLDERS: &[(&str, &[&str])] = &[
    ("text", &["."]),
    ("data", &[".", "text"]),
    ("parts", &[".", "data", "text"]),
    ("charts", &[".", "data", "parts", "text"]),
    ("pages", &[".", "charts", "data", "parts", "text"]),
];

fn modules() -> Vec<Source> {
    let sources: Vec<Source> = below("web")
        .into_iter()
        .filter(|source| {
            Path::new(&source.path)
                .extension()
                .is_some_and(|end| end == "js")
        })
        .collect();
    assert!(sources.len() > 60, "the walk found only {}", sources.len());
    sources
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A function begins in a line with its arrow or its keyword, or that a method's parameters end.
fn begins_function(line: &str) -> bool {
    let code = line.trim();
    let is_comment = code.starts_with("//") || code.starts_with('*') || code.starts_with("/*");
    let word = code.split(['(', ' ']).next().unwrap_or_default();
    let is_statement = ["if", "for", "while", "switch", "else", "try", "}", "do"].contains(&word);
    let is_method = code.ends_with(") {") && !is_statement && !code.starts_with('}');
    !is_comment && (code.contains("=>") || code.contains("function") || is_method)
}

/// Where what begins at `start` ends: what belongs to it is indented further, but for lines that
/// close one bracket and open the next.
fn end_of(lines: &[&str], start: usize) -> usize {
    let own = indent(lines[start]);
    let mut end = start;
    for (at, line) in lines.iter().enumerate().skip(start + 1) {
        let code = line.trim();
        let is_closing = code.starts_with(['}', ')', ']', '`']);
        if code.is_empty() || indent(line) > own {
            continue;
        }
        if indent(line) == own && is_closing {
            end = at;
            if code.ends_with(['{', '(', '[']) || code.ends_with("=>") {
                continue;
            }
            return end;
        }
        break;
    }
    // An expression without a closing line of its own: up to its last line that is indented.
    let inner = (start + 1..lines.len())
        .take_while(|at| lines[*at].trim().is_empty() || indent(lines[*at]) > own)
        .filter(|at| !lines[*at].trim().is_empty());
    inner.last().unwrap_or(start).max(end)
}

/// What names a function: its first line up to its parameters.
fn beginning(line: &str) -> &str {
    line.split(['(', '=']).next().unwrap_or(line).trim()
}

fn long_functions(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| begins_function(line))
    {
        let key = format!("{}:{}", source.path, beginning(line));
        let length = end_of(&lines, start) - start + 1;
        let allowed = LONG_FUNCTIONS.iter().find(|(function, _)| *function == key);
        match allowed {
            None if length > FUNCTION_LINES_MAX => found.push(format!("{key}: {length} lines")),
            Some((_, most)) if length > *most => {
                found.push(format!("{key}: grew beyond its exception ({length} lines)"));
            }
            Some(_) if length <= FUNCTION_LINES_MAX => {
                found.push(format!("{key}: needs no exception any more"));
            }
            _ => {}
        }
    }
    found
}

/// The folder of a path below `web`: `.` for what lies at the top.
fn folder(path: &str) -> &str {
    path.split_once('/').map_or(".", |(folder, _)| folder)
}

/// Imports of a module, later ones too, as paths below `web`.
fn imports(path: &str, text: &str) -> Vec<String> {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with(['*', '/']));
    let quoted = code.flat_map(|line| {
        let named = line
            .split_once(" from '")
            .or_else(|| line.split_once("import('"));
        named.and_then(|(_, rest)| rest.split('\'').next())
    });
    let own = folder(path);
    let resolved = quoted.map(|import| match (import.strip_prefix("../"), own) {
        (Some(above), _) => above.to_owned(),
        (None, ".") => import.trim_start_matches("./").to_owned(),
        (None, _) => format!("{own}/{}", import.trim_start_matches("./")),
    });
    resolved.collect()
}

fn imports_upwards(source: &Source) -> Vec<String> {
    let path = source.path.trim_start_matches("web/");
    let own = folder(path);
    let Some((_, allowed)) = FOLDERS.iter().find(|(name, _)| *name == own) else {
        return Vec::new();
    };
    let is_wrong = |import: &String| folder(import) != own && !allowed.contains(&folder(import));
    let is_frame = |import: &String| folder(import) == "." && import != "text.js";
    imports(path, &source.text)
        .into_iter()
        .filter(|import| is_wrong(import) || is_frame(import))
        .map(|import| format!("{}: imports {import}", source.path))
        .collect()
}

fn judge(check: fn(&Source) -> Vec<String>) {
    expect_none(&modules().iter().flat_map(check).collect::<Vec<_>>());
}

/// Of these enums the status page shows every state.
const SHOWN_STATES: [&str; 5] = [
    "FeedState",
    "TickerState",
    "StoreState",
    "WarmerState",
    "CacheBackend",
];
/// The page shows it as another state.
const SHOWN_OTHERWISE: &str = "speaking";

#[test]
fn each_state_has_its_word_on_the_status_page() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let states = read("src/views/states.rs");
    let page = read("web/text/status.js");
    let words = page
        .split_once("words: {")
        .unwrap()
        .1
        .split_once("},")
        .unwrap()
        .0;
    let mut missing = Vec::new();
    for name in SHOWN_STATES {
        let variants = states.split_once(&format!("enum {name} ")).unwrap().1;
        let variants = variants.split_once("\n    }").unwrap().0;
        let found = variants
            .lines()
            .filter_map(|line| line.trim().split_once(" = \""));
        let found: Vec<&str> = found
            .map(|(_, rest)| rest.trim_end_matches("\","))
            .collect();
        assert!(found.len() >= 4, "{name}: {found:?}");
        let lacks = |state: &&str| !words.contains(&format!("\n    {state}: '"));
        missing.extend(
            found
                .into_iter()
                .filter(|state| *state != SHOWN_OTHERWISE)
                .filter(lacks),
        );
    }
    assert_eq!(missing, [""; 0], "in `words` of web/text/status.js");
}

#[test]
fn functions_of_the_dashboard_are_short() {
    judge(long_functions);
}

#[test]
fn folders_of_the_dashboard_import_downwards() {
    judge(imports_upwards);
}

#[test]
fn each_folder_has_its_row() {
    for source in modules() {
        let own = folder(source.path.trim_start_matches("web/"));
        let is_known = own == "." || FOLDERS.iter().any(|(name, _)| *name == own);
        assert!(is_known, "{}: its folder has no row", source.path);
    }
}

#[test]
fn exceptions_name_what_exists() {
    let modules = modules();
    for (function, _) in LONG_FUNCTIONS {
        let (path, begins) = function.split_once(':').unwrap();
        let there = modules.iter().filter(|source| source.path == path);
        let mut lines = there.flat_map(|source| source.text.lines());
        assert!(
            lines.any(|line| beginning(line) == begins),
            "{function} is gone; drop its exception"
        );
    }
}

#[test]
fn each_check_finds_a_bad_sample() {
    let sample = |path: &str, text: String| Source {
        path: path.into(),
        text,
    };
    let body = |indent: &str, lines: usize| format!("{indent}x();\n").repeat(lines);
    let most = FUNCTION_LINES_MAX;
    for (open, close) in [
        ("function a() {", "}"),
        ("const a = () => {", "};"),
        ("const a = async ({ b }) =>\n  b(", "  );"),
        ("a.on(async () => {", "}, 300);"),
        ("function a(\n  b,\n) {", "}"),
    ] {
        let own = open.lines().count() + close.lines().count();
        let deep = if open.ends_with("b(") { "    " } else { "  " };
        let of = |lines| format!("{open}\n{}{close}\nx();\n", body(deep, lines - own));
        assert_eq!(long_functions(&sample("web/a.js", of(most))).len(), 0, "{open}");
        assert_eq!(long_functions(&sample("web/a.js", of(most + 1))).len(), 1, "{open}");
    }
    let method = format!("class A {{\n  b(c) {{\n{}  }}\n}}\n", body("    ", most));
    assert_eq!(long_functions(&sample("web/a.js", method)).len(), 1);
    let plain = format!("const A = [\n{}];\nif (a) {{\n{}}}\n", body("  ", 99), body("  ", 99));
    assert_eq!(long_functions(&sample("web/a.js", plain)).len(), 0);

    let of = |path: &str, line: &str| imports_upwards(&sample(path, line.into())).len();
    assert_eq!(of("web/data/a.js", "import { h } from '../parts/view.js';\n"), 1);
    assert_eq!(of("web/data/a.js", "const its = await import('../parts/view.js');\n"), 1);
    assert_eq!(of("web/parts/a.js", "import { b } from '../pages/market.js';\n"), 1);
    assert_eq!(of("web/parts/a.js", "import { b } from '../app.js';\n"), 1);
    assert_eq!(of("web/data/a.js", "import { text } from '../text.js';\n"), 0);
    assert_eq!(of("web/data/a.js", "import { call } from './api.js';\n"), 0);
    assert_eq!(of("web/app.js", "const page = import('./pages/market.js');\n"), 0);
}
