//! The embedded files are those of the folder `web`, are small enough, and use nothing that the
//! Content-Security-Policy forbids.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::http::Preconditions;
use crate::http::document::negotiate::Coding;
use crate::http::document::prepared::Prepared;
use crate::web::assets::PNG;

/// All files together, as brotli, with their index: what a browser keeps after a visit of every
/// page.
const BROTLI_BYTES_MAX: usize = 160_000;
/// Size of the files that the first visit of any one page loads.
const FIRST_LOAD_BYTES_MAX: usize = 30_000;
/// Bytes of a module: what one can read at a sitting.
const MODULE_BYTES_MAX: usize = 13_000;
/// Bytes of the style sheet, which has one declaration a line.
const STYLES_BYTES_MAX: usize = 48_000;
/// Columns of a line of code.
const COLUMNS_MAX: usize = 220;

/// Files of `web` for tools, not for browsers.
const NOT_SERVED: [&str; 4] = ["jsconfig.json", "openapi.d.ts", "README.md", "types.d.ts"];

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/web"))
}

fn files_below(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            files_below(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name);
        }
    }
}

fn brotli(file: &File) -> &Prepared {
    let given = Preconditions::NONE;
    file.compress().select(Some(b"br"), given).unwrap()
}

#[test]
fn the_table_is_the_folder() {
    let mut there = BTreeSet::new();
    files_below(folder(), "", &mut there);
    there.retain(|name| !NOT_SERVED.contains(&name.as_str()));
    assert!(there.remove("index.html") && there.remove("worker.js"));
    let listed: BTreeSet<_> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
    assert_eq!(there, listed);
    for asset in ASSETS {
        assert_eq!(fs::read(folder().join(asset.name)).unwrap(), asset.bytes, "{}", asset.name);
    }
}

#[test]
fn everything_fits_into_the_budget() {
    let site = Site::embedded();
    let all = site.assets.iter().chain([&site.index, &site.worker]);
    let sum: usize = all.map(|file| brotli(file).body().len()).sum();
    assert!(sum <= BROTLI_BYTES_MAX, "{sum} bytes");
    for page in ASSETS
        .iter()
        .filter(|asset| asset.name.starts_with("pages/"))
    {
        let mut loaded = BTreeSet::from(FRAME.map(str::to_owned));
        for first in ["app.js", page.name] {
            follow_imports(first, &mut loaded);
        }
        let sheet = page
            .name
            .replace("pages/", "sheets/")
            .replace(".js", ".css");
        loaded.extend(
            ASSETS
                .iter()
                .any(|asset| asset.name == sheet)
                .then_some(sheet),
        );
        loaded.extend(has_charts(page.name).then(|| "sheets/charts.css".to_owned()));
        let files = loaded.iter().map(|name| {
            let path = format!("/assets/{}/{name}", site.version());
            brotli(site.find(path.as_bytes()).unwrap()).body().len()
        });
        let first = brotli(&site.index).body().len() + files.sum::<usize>();
        assert!(loaded.len() > 12, "{loaded:?}");
        assert!(first <= FIRST_LOAD_BYTES_MAX, "{}: {first} bytes of {loaded:?}", page.name);
    }
}

/// Whether the page is in the list `CHARTED` of `app.js`.
fn has_charts(page: &str) -> bool {
    let app = ASSETS.iter().find(|asset| asset.name == "app.js").unwrap();
    let text = std::str::from_utf8(app.bytes).unwrap();
    let list = text
        .lines()
        .find(|line| line.starts_with("const CHARTED = "))
        .unwrap();
    let name = page.trim_start_matches("pages/").trim_end_matches(".js");
    list.contains(&format!("'{name}'"))
}

/// What the document itself names, besides modules.
const FRAME: [&str; 4] = ["app.webmanifest", "icon.svg", "style.css", "theme.js"];

/// The module, and all that it needs before it runs. What `import()` fetches later is not among it.
fn follow_imports(name: &str, found: &mut BTreeSet<String>) {
    if !found.insert(name.to_owned()) {
        return;
    }
    let asset = ASSETS
        .iter()
        .find(|asset| asset.name == name)
        .unwrap_or_else(|| panic!("{name}"));
    let text = std::str::from_utf8(asset.bytes).unwrap();
    let folder = Path::new(name).parent().unwrap();
    for line in text.lines().filter(|line| line.contains(" from '.")) {
        let path = line.rsplit('\'').nth(1).unwrap();
        let mut place = folder.to_path_buf();
        for part in path.split('/') {
            match part {
                "." => {}
                ".." => assert!(place.pop(), "{name}: {path}"),
                part => place.push(part),
            }
        }
        follow_imports(place.to_str().unwrap(), found);
    }
}

#[test]
fn nothing_comes_from_elsewhere_and_no_text_becomes_code() {
    // Written in parts, so that a search for them finds no other place.
    let banned = [
        "//cdn",
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "eval(",
        "style=\"",
        "document.write",
    ];
    let code = ASSETS.iter().filter(|asset| asset.content_type() != PNG);
    let code = code.map(|asset| (asset.name, std::str::from_utf8(asset.bytes).unwrap()));
    for (name, text) in code.chain([("index", INDEX), ("worker", WORKER)]) {
        let plain = text.replace("http://www.w3.org/2000/svg", "");
        for word in banned.iter().chain(&["http://", "https://"]) {
            assert!(!plain.contains(word), "{name}: {word}");
        }
        let handler = regex_like_handler(&plain);
        assert!(handler.is_none(), "{name}: {handler:?}");
    }
}

/// An attribute such as `onclick="…"` in markup.
fn regex_like_handler(text: &str) -> Option<&str> {
    text.match_indices(" on")
        .map(|(at, _)| &text[at + 1..])
        .find(|rest| {
            let name = rest.bytes().take_while(u8::is_ascii_lowercase).count();
            name > 3 && rest[name..].starts_with("=\"")
        })
}

#[test]
fn comments_are_left_out_and_lines_keep_their_numbers() {
    let text = "// one\n  const a = 'https: //x'; // kept\n/**\n * two\n */\n/** three */\n\
                /** @type {A} */ (b);\n  /* four */\nend\n";
    let kept = "\nconst a = 'https: //x'; // kept\n\n\n\n\n/** @type {A} */ (b);\n\nend\n";
    assert_eq!(without_comments(text), kept);
    for asset in ASSETS
        .iter()
        .filter(|asset| [JS, CSS].contains(&asset.content_type()))
    {
        let text = std::str::from_utf8(asset.bytes).unwrap();
        assert_eq!(without_comments(text).lines().count(), text.lines().count(), "{}", asset.name);
        for (at, line) in text.lines().enumerate() {
            // A text over several lines could have one that looks like a comment.
            assert!(line.matches('`').count() % 2 == 0, "{}:{}", asset.name, at + 1);
            assert!(line.matches("*/").count() <= 1, "{}:{}", asset.name, at + 1);
        }
    }
}

#[test]
fn files_are_short_enough_to_read() {
    for asset in ASSETS.iter().filter(|asset| asset.content_type() != PNG) {
        let text = std::str::from_utf8(asset.bytes).unwrap();
        let is_styles = asset.content_type() == CSS;
        let most = if is_styles {
            STYLES_BYTES_MAX
        } else {
            MODULE_BYTES_MAX
        };
        assert!(text.len() <= most, "{}: {} bytes", asset.name, text.len());
        for (at, line) in text
            .lines()
            .enumerate()
            .filter(|_| asset.name.ends_with(".js"))
        {
            let columns = line.chars().count();
            assert!(columns <= COLUMNS_MAX, "{}:{}: {columns} columns", asset.name, at + 1);
        }
        for (at, line) in text.lines().enumerate().filter(|_| is_styles) {
            let is_one =
                line.matches(';').count() <= 1 && !(line.contains('{') && line.contains(';'));
            assert!(is_one, "{}:{}: more than one declaration", asset.name, at + 1);
        }
    }
}

/// A closing brace too many hides the rule behind it.
#[test]
fn every_rule_of_a_style_sheet_is_closed_once() {
    for asset in ASSETS.iter().filter(|asset| asset.content_type() == CSS) {
        let text = without_comments(std::str::from_utf8(asset.bytes).unwrap());
        let mut open = 0_i32;
        for (at, line) in text.lines().enumerate() {
            open += i32::try_from(line.matches('{').count()).unwrap();
            open -= i32::try_from(line.matches('}').count()).unwrap();
            assert!(open >= 0, "{}:{}: closes nothing", asset.name, at + 1);
        }
        assert_eq!(open, 0, "{}", asset.name);
    }
}

#[test]
fn the_version_names_the_content_and_stands_in_the_paths() {
    let site = Site::embedded();
    assert_eq!(site.version().len(), VERSION_DIGITS);
    let index = std::str::from_utf8(&site.index.body).unwrap();
    assert!(!index.contains("%V%"));
    assert!(index.contains(&format!("/assets/{}/app.js", site.version())));
    assert!(site.find(b"/assets/000000000000/app.js").is_none());
    assert!(
        site.find(format!("/assets/{}/nothing.js", site.version()).as_bytes())
            .is_none()
    );
    assert!(site.find(b"/portfolio/").is_none());
    for path in ["/s/NSE:INFY", "/s/NSE:NIFTY%2050", "/s/NSE:M%26M"] {
        assert!(site.find(path.as_bytes()).is_some(), "{path}");
    }
    let long = format!("/s/{}", "A".repeat(SYMBOL_BYTES_MAX + 1));
    for path in ["/s", "/s/", "/s/NSE:INFY/", "/s/NSE:NIFTY 50", &long] {
        assert!(site.find(path.as_bytes()).is_none(), "{path}");
    }
    let same = |coding| site.index.compress().etag(coding).to_owned();
    assert_eq!(same(Coding::Identity), site.index.plain().etag(Coding::Identity));
}
