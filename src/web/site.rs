//! Finds the file of a path, as complete responses.
//!
//! The pages have fixed paths and are revalidated on each visit. Everything else has the version in
//! its path and may be kept for ever: modules import each other by relative paths, so a page of
//! yesterday never loads a module of today.

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use crate::base::settings;
use crate::http::document::variants::content_tag;
use crate::http::{CachePolicy, Variants};

/// Permissions of the pages: load from here, connect to here, and nothing else. Scripts cannot turn
/// text into markup or code, since no Trusted Types policy can be made.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

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
    "/account",
    "/status",
    "/api",
];

const ASSETS_PATH: &str = "/assets/";

/// Hexadecimal digits of the hash that is the version.
const VERSION_DIGITS: usize = 12;

/// The embedded dashboard.
pub struct Site {
    version: String,
    index: File,
    /// Files in the order of the table.
    assets: Vec<File>,
}

/// A file as complete responses.
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

    /// The same site with a notice on every page. A process has one such text, the first.
    pub(crate) fn with_notice(notice: &str) -> &'static Self {
        static SITE: OnceLock<Site> = OnceLock::new();
        SITE.get_or_init(|| {
            let text = notice.replace('&', "&amp;").replace('<', "&lt;");
            Site::new(&format!("<div class=\"banner notice\"><p>{text}</p></div>\n"))
        })
    }

    fn new(notice: &str) -> Self {
        let version = version();
        let index = INDEX.replace("%V%", &version).replace("%NOTICE%", notice).into_bytes();
        let asset = |asset: &Asset| {
            File::new(
                Cow::Borrowed(asset.bytes),
                asset.content_type,
                "public, max-age=31536000, immutable",
                ASSET_HEADERS,
            )
        };
        Self {
            index: File::new(Cow::Owned(index), HTML, "no-cache", PAGE_HEADERS),
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
        if PAGES.contains(&path) {
            return Some(&self.index);
        }
        let name =
            path.strip_prefix(ASSETS_PATH)?.strip_prefix(&self.version)?.strip_prefix('/')?;
        let at = ASSETS.iter().position(|asset| asset.name == name)?;
        self.assets.get(at)
    }
}

impl File {
    fn new(
        body: Cow<'static, [u8]>,
        content_type: &'static str,
        cache_control: &'static str,
        headers: &'static [(&'static str, &'static str)],
    ) -> Self {
        let policy = CachePolicy {
            content_type,
            cache_control,
            vary: "Accept-Encoding",
            headers,
            compressed_from_bytes: COMPRESSED_FROM_BYTES,
            brotli_quality: BROTLI_QUALITY,
        };
        let tag = content_tag(&body);
        let alone = CachePolicy { compressed_from_bytes: usize::MAX, ..policy };
        let plain = Variants::tagged(&body, &tag, &alone);
        Self { body, tag, policy, plain, compressed: OnceLock::new() }
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
        self.compressed.get_or_init(|| Variants::tagged(&self.body, &self.tag, &self.policy))
    }
}

fn version() -> String {
    let mut all = INDEX.as_bytes().to_vec();
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

// ---- Assets
//
// The table of embedded files. A test compares it with the folder `web`.

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const MANIFEST: &str = "application/manifest+json";
const SVG: &str = "image/svg+xml";

/// An embedded file.
pub(super) struct Asset {
    /// Its path in the folder `web`.
    pub(super) name: &'static str,
    pub(super) content_type: &'static str,
    pub(super) bytes: &'static [u8],
}

/// The document of every page. In it `%V%` stands for the version, and `%NOTICE%` for markup that a
/// public demo has on every page.
pub(super) const INDEX: &str = include_str!("../../web/index.html");

macro_rules! assets {
    ($($name:literal $content_type:ident,)*) => {
        &[$(Asset {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../../web/", $name)),
        },)*]
    };
}

/// All files that the pages load.
pub(super) const ASSETS: &[Asset] = assets! {
    "api.js" JS,
    "app.js" JS,
    "app.webmanifest" MANIFEST,
    "candles.js" JS,
    "chart.js" JS,
    "combobox.js" JS,
    "figures.js" JS,
    "form.js" JS,
    "format.js" JS,
    "holdings.js" JS,
    "icon.svg" SVG,
    "journal-form.js" JS,
    "live.js" JS,
    "pages/account.js" JS,
    "pages/api.js" JS,
    "pages/journal.js" JS,
    "pages/login.js" JS,
    "pages/market.js" JS,
    "pages/portfolio.js" JS,
    "pages/signals.js" JS,
    "pages/status.js" JS,
    "pages/sync.js" JS,
    "pages/trend.js" JS,
    "pages/watch.js" JS,
    "positions.js" JS,
    "prefs.js" JS,
    "report.js" JS,
    "signal-table.js" JS,
    "strip.js" JS,
    "style.css" CSS,
    "table.js" JS,
    "text.js" JS,
    "theme.js" JS,
    "view.js" JS,
};

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
