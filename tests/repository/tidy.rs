//! Rules of the code base that a machine can check. Each ban names the alternative.
//!
//! The two lists below hold the exceptions and may only shrink: an exception that is not needed
//! fails too.

use crate::support::source::{Source, below, expect_none, root, rust, without_comments, word};

/// Most lines of code in a file, without comments and unit tests: a thought may be long. The lower
/// bound is in `budget`.
const CODE_LINES_MAX: usize = 1_000;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_CHARS_MAX: usize = 100;

/// Files that may be longer, up to the given number of lines.
const LONG_FILES: &[(&str, usize)] = &[];
/// Functions (`file:name`) that may be longer, up to the given number of lines.
const LONG_FUNCTIONS: &[(&str, usize)] = &[];

/// Spelled in two halves so that this file does not ban itself.
const BANNED_CODE: &[(&str, &str, &str)] = &[
    ("todo", "!(", "build it, or leave the route out"),
    ("unimplemented", "!(", "build it, or leave the route out"),
    ("FIX", "ME", "fix it, or open an issue"),
    ("XX", "X", "say what is meant, or open an issue"),
    ("TO", "DO", "do it, or open an issue"),
    ("#[ign", "ore", "make the test run everywhere, or delete it"),
    ("thread::sl", "eep", "wait on a condition with a deadline; rt schedules"),
    ("dbg", "!(", "log it with tracing"),
];

/// Meaningless words in names, with their alternatives.
const BANNED_WORDS: &[(&str, &str)] = &[
    ("util", "the thing it owns"),
    ("utils", "the thing it owns"),
    ("manager", "what it does to what"),
    ("helper", "what it does"),
    ("helpers", "what they do"),
    ("misc", "the thing it owns"),
];

/// Paths of one machine, again in halves.
const MACHINE_PATHS: &[(&str, &str, &str)] = &[
    ("/wo", "rk", "a path from the repository's root"),
    ("/ro", "ot", "a path from the repository's root"),
    ("/ho", "me/", "a path from the repository's root"),
    ("/t", "mp", "tempfile, or mktemp"),
];

/// Names given by a trait of another crate.
const FOREIGN: [&str; 1] = ["get_db"];

const DEFINING: [&str; 9] = [
    "fn ",
    "struct ",
    "enum ",
    "trait ",
    "mod ",
    "const ",
    "static ",
    "type ",
    "macro_rules! ",
];

fn lengths(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let lines = source.code_lines().len();
    let long = lines > CODE_LINES_MAX;
    let allowed = LONG_FILES.iter().find(|(path, _)| *path == source.path);
    match allowed {
        None if long => {
            let most = format!("split by idea at {CODE_LINES_MAX}");
            found.push(format!("{}: {lines} lines of code; {most}", source.path));
        }
        Some((_, most)) if lines > *most => {
            found.push(format!("{}: grew beyond its exception ({lines} lines)", source.path));
        }
        Some(_) if !long => {
            found.push(format!("{}: needs no exception any more", source.path));
        }
        _ => {}
    }
    for (number, line) in source.text.lines().enumerate() {
        let chars = line.chars().count();
        // URLs cannot be broken.
        if chars > LINE_CHARS_MAX && !line.contains("://") {
            found.push(format!("{}:{}: {chars} characters", source.path, number + 1));
        }
    }
    found
}

/// rustfmt ends a function with a brace at the indentation of its first line.
fn long_functions(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let Some(name) = defined(code, "fn ") else {
            continue;
        };
        let close = format!("{indent}}}");
        let end = (start..lines.len())
            .find(|at| lines[*at] == close || (*at == start && is_one_line(lines[*at])));
        let length = end.map_or(0, |end| end - start + 1);
        let key = format!("{}:{name}", source.path);
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

fn is_one_line(line: &str) -> bool {
    line.ends_with('}') || line.ends_with(';')
}

/// The name that a line of code defines with `keyword`, after `pub`, `async`, `unsafe` and the
/// like.
fn defined<'a>(code: &'a str, keyword: &str) -> Option<&'a str> {
    let offset = code.find(keyword)?;
    let prefix = &code[..offset];
    let prefix_words = [
        "pub",
        "pub(crate)",
        "pub(crate)",
        "const",
        "async",
        "unsafe",
        "extern",
    ];
    if !prefix
        .split_whitespace()
        .all(|word| prefix_words.contains(&word))
    {
        return None;
    }
    let name = word(&code[offset + keyword.len()..]);
    (!name.is_empty()).then_some(name)
}

/// A `mod.rs` describes its folder and its exports. Code belongs in a file.
fn code_in_mod(source: &Source) -> Vec<String> {
    if !source.path.ends_with("/mod.rs") || !source.path.starts_with("src/") {
        return Vec::new();
    }
    let is_code = |line: &str| {
        let line = line.trim_end();
        let keywords = [
            "fn ", "struct ", "enum ", "trait ", "const ", "static ", "type ",
        ];
        keywords
            .iter()
            .any(|keyword| defined(line, keyword).is_some())
            || line.starts_with("impl")
            || line.starts_with("use ")
    };
    let lines = source
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| is_code(line));
    lines
        .map(|(at, _)| format!("{}:{}: give it a file", source.path, at + 1))
        .collect()
}

fn opening(source: &Source) -> Vec<String> {
    if source.text.starts_with("//!") || source.text.starts_with("#!") {
        return Vec::new();
    }
    vec![format!(
        "{}: open with //! and what the file owns",
        source.path
    )]
}

fn names(source: &Source) -> Vec<String> {
    let mut found: Vec<String> = source
        .path
        .split(['/', '.'])
        .flat_map(bad_words)
        .map(|why| format!("{}: {why}", source.path))
        .collect();
    for (number, line) in without_comments(&source.text).lines().enumerate() {
        let code = line.trim_start();
        for name in DEFINING.iter().filter_map(|keyword| defined(code, keyword)) {
            let at = format!("{}:{}: {name}", source.path, number + 1);
            found.extend(
                bad_words(name)
                    .into_iter()
                    .map(|why| format!("{at}: {why}")),
            );
            if code.contains("fn ") && name.starts_with("get_") && !FOREIGN.contains(&name) {
                found.push(format!("{at}: drop get_"));
            }
        }
    }
    found
}

fn bad_words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() || letter == '_' {
            spaced.push(' ');
        }
        spaced.extend(letter.to_lowercase().filter(|c| *c != '_'));
    }
    spaced
        .split_whitespace()
        .filter_map(|part| BANNED_WORDS.iter().find(|(word, _)| *word == part))
        .map(|(word, instead)| format!("`{word}` says nothing; name {instead}"))
        .collect()
}

fn banned_code(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        for (first, second, instead) in BANNED_CODE {
            let spelling = format!("{first}{second}");
            let bare_word = spelling.chars().all(char::is_alphanumeric);
            if holds(line, &spelling, bare_word) {
                found.push(format!("{}:{}: {spelling}: {instead}", source.path, number + 1));
            }
        }
    }
    found
}

/// With `whole`, no letter or digit may be adjacent.
fn holds(line: &str, needle: &str, whole: bool) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + needle.len()..].chars().next();
        let joined = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !whole || (!joined(before) && !joined(after))
    })
}

fn machine_paths(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        for (first, second, instead) in MACHINE_PATHS {
            let path = format!("{first}{second}");
            // `loadtest` + path, `${X}` + path and `..` + path are relative.
            let absolute = line.match_indices(&path).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = line[at + path.len()..].chars().next();
                let relative = before.is_some_and(|c| c.is_alphanumeric() || "._-}/$*".contains(c));
                let longer = after.is_some_and(|c| c.is_alphanumeric() || "_-".contains(c));
                !relative && (!longer || path.ends_with('/'))
            });
            if absolute {
                found.push(format!("{}:{}: {path}: {instead}", source.path, number + 1));
            }
        }
    }
    found
}

fn rust_sources() -> Vec<Source> {
    let sources = rust(&["src", "tests", "benches", "examples", "fuzz", "loadtest"]);
    assert!(sources.len() > 20, "the walk found only {}", sources.len());
    sources
}

fn judge(check: fn(&Source) -> Vec<String>) {
    expect_none(&rust_sources().iter().flat_map(check).collect::<Vec<_>>());
}

#[test]
fn files_and_lines_are_short() {
    judge(lengths);
}

#[test]
fn functions_are_short() {
    judge(long_functions);
}

#[test]
fn files_open_with_what_they_own() {
    judge(opening);
}

#[test]
fn mod_files_hold_no_code() {
    judge(code_in_mod);
}

#[test]
fn names_say_something() {
    judge(names);
}

#[test]
fn banned_spellings_are_absent() {
    // The load driver and the example of a client pace real time and have no product clock or
    // scheduler to use instead.
    let paced = ["loadtest/", "examples/"];
    let ours = |source: &&Source| !paced.iter().any(|folder| source.path.starts_with(folder));
    let found: Vec<_> = rust_sources()
        .iter()
        .filter(ours)
        .flat_map(banned_code)
        .collect();
    expect_none(&found);
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    expect_none(&below("").iter().flat_map(machine_paths).collect::<Vec<_>>());
}

#[test]
fn exceptions_name_what_exists() {
    for (path, _) in LONG_FILES {
        assert!(root().join(path).is_file(), "{path} is gone; drop its exception");
    }
    let sources = rust_sources();
    for (function, _) in LONG_FUNCTIONS {
        let (path, name) = function.rsplit_once(':').unwrap();
        let there = sources
            .iter()
            .filter(|source| source.path == path)
            .any(|source| source.text.contains(&format!("fn {name}")));
        assert!(there, "{function} is gone; drop its exception");
    }
}

#[test]
fn each_sql_file_is_compiled_in() {
    let code: String = rust(&["src"])
        .into_iter()
        .map(|source| source.text)
        .collect();
    let missing: Vec<String> = below("sql")
        .into_iter()
        .filter(|source| source.path.ends_with(".sql") && !code.contains(&source.path))
        .map(|source| format!("{}: no include_str! names it", source.path))
        .collect();
    expect_none(&missing);
}

#[test]
fn each_check_finds_a_bad_sample() {
    let sample = |path: &str, text: String| Source {
        path: path.into(),
        text,
    };
    let code = "x();\n".repeat(CODE_LINES_MAX);
    let tests = format!("//! x\n{code}\n#[cfg(test)]\nmod tests {{\n    x();\n}}\n");
    assert_eq!(lengths(&sample("src/a.rs", tests.clone())).len(), 0);
    assert_eq!(lengths(&sample("src/a.rs", format!("{tests}x();\n"))).len(), 1);
    let wide = format!("// {}\n// {} https://x\n", "x".repeat(98), "x".repeat(98));
    assert_eq!(lengths(&sample("src/a.rs", wide)).len(), 1);

    let body = "        x();\n".repeat(FUNCTION_LINES_MAX - 1);
    let long = format!("impl A {{\n    pub fn long() {{\n{body}    }}\n    fn short() {{}}\n}}\n");
    assert_eq!(long_functions(&sample("src/a.rs", long)), ["src/a.rs:long: 71 lines"]);
    let fits = body.replacen("        x();\n", "", 1);
    let fits = format!("fn fits() {{\n{}}}\n", fits.replace("        ", "    "));
    assert_eq!(long_functions(&sample("src/a.rs", fits)).len(), 0);

    assert_eq!(opening(&sample("src/a.rs", "use std::io;\n".into())).len(), 1);
    let code = "//! A.\n\nmod b;\n\npub use b::C;\nuse std::io;\npub(crate) fn d() {}\n";
    assert_eq!(code_in_mod(&sample("src/a/mod.rs", code.into())).len(), 2);
    let named = "struct QuoteManager;\nfn get_quote() {}\nlet manager = 1;\n// fn get_x\n";
    assert_eq!(names(&sample("src/a.rs", named.into())).len(), 2);
    assert_eq!(names(&sample("src/util/mod.rs", String::new())).len(), 1);
    for (first, second, _) in BANNED_CODE {
        let text = format!("    {first}{second}\n");
        assert_eq!(banned_code(&sample("src/a.rs", text)).len(), 1, "{first}{second}");
    }
    for (first, second, _) in MACHINE_PATHS {
        let bad = format!("open(\"{first}{second}\")\nlet a = \"loadtest{first}{second}\";\n");
        assert_eq!(machine_paths(&sample("src/a.rs", bad)).len(), 1, "{first}{second}");
    }
}
