//! Finds the file of a path, as complete responses.
//!
//! The pages have fixed paths and are revalidated on each visit. Everything else has the version in
//! its path and may be kept for ever: modules import each other by relative paths, so a page of
//! yesterday never loads a module of today.

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use crate::base::settings;
use crate::http::document::coding::content_tag;
use crate::http::{CachePolicy, Variants};
use crate::web::assets::{ASSETS, Asset, CSS, INDEX, JS, WORKER};

/// Permissions of the pages: load from here, connect to here, and nothing else. Scripts cannot turn
/// text into markup or code. The one Trusted Types policy that can be made, once, is that of
/// `web/offline.js`: a browser needs it to register a service worker, and it knows one address.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types shell";

const PAGE_HEADERS: &[(&str, &str)] = &[
    ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()"),
];

/// Headers of files. A page's permissions are in its document: a browser ignores these headers on a
/// script or a style sheet, and on twenty files they would add 6 KB. A file that is opened by
/// itself has no permissions.
const ASSET_HEADERS: &[(&str, &str)] = &[
    ("Content-Security-Policy", "default-src 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
];

/// Headers of the service worker, which fetches the document and its files.
const WORKER_HEADERS: &[(&str, &str)] = &[
    ("Content-Security-Policy", "default-src 'self'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
];

const HTML: &str = "text/html; charset=utf-8";

/// Smaller files get larger by compression, or not noticeably smaller.
const COMPRESSED_FROM_BYTES: usize = 256;

/// The slowest: files are compressed once in the life of a process.
const BROTLI_QUALITY: i32 = 11;

/// The paths that answer with a page.
const PAGES: &[&str] = &[
    "/",
    "/watch",
    "/login",
    "/portfolio",
    "/portfolio/sync/a",
    "/portfolio/sync/b",
    "/trend",
    "/signals",
    "/journal",
    "/trades",
    "/gains",
    "/integrity",
    "/account",
    "/status",
    "/api",
];

/// The page of a symbol is below this path: `/s/NSE:INFY`.
const SYMBOLS_PATH: &str = "/s/";

/// Longest symbol in a path, percent-encoded.
const SYMBOL_BYTES_MAX: usize = 96;

const ASSETS_PATH: &str = "/assets/";

/// The service worker. Its path is fixed and above all pages; it has the version in its text.
const WORKER_PATH: &str = "/worker.js";

/// Hexadecimal digits of the hash that is the version.
const VERSION_DIGITS: usize = 12;

/// The embedded dashboard.
pub struct Site {
    version: String,
    index: File,
    /// The same document with status 404: it says that there is no such page.
    missing: File,
    worker: File,
    /// Files in the order of the table.
    assets: Vec<File>,
}

/// A file that is part of the program, as complete responses.
pub struct File {
    body: Cow<'static, [u8]>,
    tag: String,
    policy: CachePolicy,
    /// The file without a content coding.
    plain: Variants,
    compressed: OnceLock<Variants>,
}

impl Site {
    /// The site of this program, made when it is first asked for.
    pub(crate) fn embedded() -> &'static Self {
        static SITE: LazyLock<Site> = LazyLock::new(|| Site::new(""));
        &SITE
    }

    /// The same site of a demo, whose login page offers these accounts. A process has one such
    /// list, the first.
    pub(crate) fn of_demo(guests: &[Guest]) -> &'static Self {
        static SITE: OnceLock<Site> = OnceLock::new();
        SITE.get_or_init(|| Site::new(&listed(guests)))
    }

    /// The same site of a demo for strangers, with a notice on every page. A process has one such
    /// text, the first.
    pub(crate) fn of_public_demo(notice: &str, guests: &[Guest]) -> &'static Self {
        static SITE: OnceLock<Site> = OnceLock::new();
        SITE.get_or_init(|| {
            let text = escaped(notice);
            let notice =
                format!("<div class=\"banner notice\" id=\"notice\"><p>{text}</p></div>\n");
            Site::new(&format!("{notice}{}", listed(guests)))
        })
    }

    fn new(notice: &str) -> Self {
        let version = version();
        let index = INDEX
            .replace("%V%", &version)
            .replace("%NOTICE%", notice)
            .into_bytes();
        let worker = without_comments(WORKER)
            .replace("%V%", &version)
            .into_bytes();
        let page = |status, cache_control| {
            let policy = policy(status, HTML, cache_control, PAGE_HEADERS);
            File::new(Cow::Owned(index.clone()), policy)
        };
        let asset = |asset: &Asset| {
            let cached = "public, max-age=31536000, immutable";
            File::new(served(asset), policy(200, asset.content_type(), cached, ASSET_HEADERS))
        };
        Self {
            index: page(200, "no-cache"),
            missing: page(404, "no-store"),
            worker: File::new(Cow::Owned(worker), policy(200, JS, "no-cache", WORKER_HEADERS)),
            assets: ASSETS.iter().map(asset).collect(),
            version,
        }
    }

    /// Names the content of all files.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The file at a path; `None` if there is none.
    pub(crate) fn find(&self, path: &[u8]) -> Option<&File> {
        let path = std::str::from_utf8(path).ok()?;
        if is_page(path) {
            return Some(&self.index);
        }
        if path == WORKER_PATH {
            return Some(&self.worker);
        }
        let name = path
            .strip_prefix(ASSETS_PATH)?
            .strip_prefix(&self.version)?
            .strip_prefix('/')?;
        let at = ASSETS.iter().position(|asset| asset.name == name)?;
        self.assets.get(at)
    }

    /// The document for people at a path where there is nothing; `None` where programs look, below
    /// the paths of the API and of files.
    pub(crate) fn missing(&self, path: &[u8]) -> Option<&File> {
        let programs: [&[u8]; 3] = [b"/api/", b"/assets/", b"/return/"];
        let is_for_people = !programs.iter().any(|prefix| path.starts_with(prefix));
        is_for_people.then_some(&self.missing)
    }
}

/// The page that a path names with a slash too many at its end; `None` if it names none.
pub(crate) fn page_without_slash(path: &[u8]) -> Option<&str> {
    let path = std::str::from_utf8(path).ok()?.strip_suffix('/')?;
    (path != "/" && is_page(path)).then_some(path)
}

fn is_page(path: &str) -> bool {
    PAGES.contains(&path) || path.strip_prefix(SYMBOLS_PATH).is_some_and(is_symbol)
}

/// An account that every visitor of a demo may enter. Its password is no secret.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guest {
    pub name: &'static str,
    pub email: &'static str,
    pub password: &'static str,
    /// What is to be seen in it.
    pub about: &'static str,
}

/// The accounts for the page's script.
fn listed(guests: &[Guest]) -> String {
    let rows = guests.iter().map(|guest| {
        let [name, email, password, about] =
            [guest.name, guest.email, guest.password, guest.about].map(escaped);
        format!(
            "<li data-name=\"{name}\" data-email=\"{email}\" data-password=\"{password}\">\
             {about}</li>"
        )
    });
    format!("<ul id=\"guests\" hidden>{}</ul>\n", rows.collect::<String>())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

/// Whether it can stand for a symbol in a path: one segment of visible ASCII.
fn is_symbol(segment: &str) -> bool {
    let is_plain = segment
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'/');
    (1..=SYMBOL_BYTES_MAX).contains(&segment.len()) && is_plain
}

fn policy(
    status: u16,
    content_type: &'static str,
    cache_control: &'static str,
    headers: &'static [(&'static str, &'static str)],
) -> CachePolicy {
    CachePolicy {
        status,
        content_type,
        cache_control,
        vary: "Accept-Encoding",
        headers,
        compressed_from_bytes: COMPRESSED_FROM_BYTES,
        brotli_quality: BROTLI_QUALITY,
    }
}

impl File {
    /// Hashes the file, which takes a millisecond for each MiB.
    pub(crate) fn new(body: Cow<'static, [u8]>, policy: CachePolicy) -> Self {
        let tag = content_tag(&body);
        let alone = CachePolicy {
            compressed_from_bytes: usize::MAX,
            ..policy
        };
        let plain = Variants::tagged(&body, &tag, &alone);
        Self {
            body,
            tag,
            policy,
            plain,
            compressed: OnceLock::new(),
        }
    }

    /// The file without a content coding.
    pub(crate) fn plain(&self) -> &Variants {
        &self.plain
    }

    /// The file in every content coding, if it was compressed already.
    pub(crate) fn compressed(&self) -> Option<&Variants> {
        self.compressed.get()
    }

    /// Compresses the file. Takes some tens of milliseconds, so it is for OS threads, not the edge.
    pub(crate) fn compress(&self) -> &Variants {
        self.compressed
            .get_or_init(|| Variants::tagged(&self.body, &self.tag, &self.policy))
    }
}

/// The bytes that a browser loads: code without its comments and indentation, which are a sixth of
/// it, compressed. Line breaks stay, so that a browser names the same lines as the file has.
fn served(asset: &Asset) -> Cow<'static, [u8]> {
    if ![JS, CSS].contains(&asset.content_type()) {
        return Cow::Borrowed(asset.bytes);
    }
    let text = std::str::from_utf8(asset.bytes).expect("code is text");
    Cow::Owned(without_comments(text).into_bytes())
}

/// Only comments of whole lines are left out. One that ends before its line does is in front of
/// code: a type.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_in_comment = false;
    for line in text.lines().map(str::trim) {
        let is_begun = !is_in_comment && line.starts_with("/*");
        let ends_at = line.find("*/").map(|at| at + 2);
        let is_code_behind = is_begun && ends_at.is_some_and(|at| at < line.len());
        if is_in_comment || is_begun && !is_code_behind {
            is_in_comment = ends_at.is_none();
        } else if !line.starts_with("//") {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    kept
}

fn version() -> String {
    let mut all = [INDEX, WORKER].concat().into_bytes();
    for asset in ASSETS {
        all.extend_from_slice(asset.name.as_bytes());
        all.push(0);
        all.extend_from_slice(asset.bytes);
        all.push(0);
    }
    let mut version = content_tag(&all);
    version.truncate(VERSION_DIGITS);
    version
}

// ---- Settings
//
// Settings of the dashboard.

settings! {
    /// Settings of the dashboard.
    pub struct WebSettings {
        /// Whether its pages are served.
        pub on: bool = true,
    }
}

#[cfg(test)]
#[path = "site_tests.rs"]
mod tests;
