//! The table of embedded files. A test compares it with the folder `web`.

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

/// The document of every page. `%V%` in it stands for the version.
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

/// Everything that the pages load.
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
