//! The embedded files are those of the folder `web`, are small enough, and use nothing that the
//! Content-Security-Policy forbids.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::http::Preconditions;
use crate::http::document::variants::{Coding, Prepared};

/// All files together, as brotli, with their index.
const BROTLI_BYTES_MAX: usize = 64_000;
/// Size of the files that the first visit of the market's page loads.
const FIRST_LOAD_BYTES_MAX: usize = 30_000;

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
    assert!(there.remove("index.html"));
    let listed: BTreeSet<_> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
    assert_eq!(there, listed);
    for asset in ASSETS {
        assert_eq!(fs::read(folder().join(asset.name)).unwrap(), asset.bytes, "{}", asset.name);
    }
}

#[test]
fn everything_fits_into_the_budget() {
    let site = Site::embedded();
    let all = site.assets.iter().chain([&site.index]);
    let sum: usize = all.map(|file| brotli(file).body().len()).sum();
    assert!(sum <= BROTLI_BYTES_MAX, "{sum} bytes");
    let index = std::str::from_utf8(&site.index.body).unwrap();
    let mut loaded: Vec<_> = ASSETS.iter().filter(|asset| index.contains(asset.name)).collect();
    // The page itself, and the modules that only it imports.
    let own = ["pages/market.js", "signal-table.js", "figures.js", "table.js"];
    loaded.extend(ASSETS.iter().filter(|asset| own.contains(&asset.name)));
    assert!(loaded.len() > 10, "{}", loaded.len());
    let first: usize = loaded
        .iter()
        .map(|asset| {
            let path = format!("/assets/{}/{}", site.version(), asset.name);
            brotli(site.find(path.as_bytes()).unwrap()).body().len()
        })
        .sum();
    let first = first + brotli(&site.index).body().len();
    assert!(first <= FIRST_LOAD_BYTES_MAX, "{first} bytes");
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
    for asset in
        ASSETS.iter().map(|asset| (asset.name, asset.bytes)).chain([("index", INDEX.as_bytes())])
    {
        let (name, text) = (asset.0, std::str::from_utf8(asset.1).unwrap());
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
    text.match_indices(" on").map(|(at, _)| &text[at + 1..]).find(|rest| {
        let name = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        name > 3 && rest[name..].starts_with("=\"")
    })
}

#[test]
fn files_are_short_enough_to_read() {
    for asset in ASSETS {
        let lines = std::str::from_utf8(asset.bytes).unwrap().lines().count();
        assert!(lines <= 250, "{}: {lines} lines", asset.name);
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
    assert!(site.find(format!("/assets/{}/nothing.js", site.version()).as_bytes()).is_none());
    assert!(site.find(b"/portfolio/").is_none());
    let same = |coding| site.index.compress().etag(coding).to_owned();
    assert_eq!(same(Coding::Identity), site.index.plain().etag(Coding::Identity));
}
