//! The table of the embedded files: what the pages load, and what each is served as. A test
//! compares it with the folder `web`.

pub(super) const CSS: &str = "text/css; charset=utf-8";
pub(super) const JS: &str = "text/javascript; charset=utf-8";
pub(super) const PNG: &str = "image/png";
const MANIFEST: &str = "application/manifest+json";
const SVG: &str = "image/svg+xml";

/// An embedded file.
pub(super) struct Asset {
    /// Its path in the folder `web`.
    pub(super) name: &'static str,
    pub(super) bytes: &'static [u8],
}

impl Asset {
    /// By the end of its name.
    pub(super) fn content_type(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("css") => CSS,
            Some("png") => PNG,
            Some("svg") => SVG,
            Some("webmanifest") => MANIFEST,
            _ => JS,
        }
    }
}

/// The document of every page. In it `%V%` stands for the version, and `%NOTICE%` for markup that a
/// demo has on every page.
pub(super) const INDEX: &str = include_str!("../../web/index.html");

/// The service worker; `%V%` as in the document.
pub(super) const WORKER: &str = include_str!("../../web/worker.js");

macro_rules! assets {
    ($($name:literal,)*) => {
        &[$(Asset { name: $name, bytes: include_bytes!(concat!("../../web/", $name)) },)*]
    };
}

/// All files that the pages load.
pub(super) const ASSETS: &[Asset] = assets! {
    "app.js", "app.webmanifest", "charts/candle-chart.js", "charts/candles.js", "charts/chart.js",
    "charts/reliability.js", "charts/spark.js", "charts/trend-chart.js", "data/api.js",
    "data/axis-format.js", "data/begun-entry.js", "data/correction.js", "data/csv.js",
    "data/estimate.js", "data/format.js", "data/gains.js", "data/last-day.js", "data/ledger.js",
    "data/live.js", "data/moved.js", "data/names.js", "data/no-prices.js", "data/percent.js",
    "data/prefs.js", "data/ratio-format.js", "data/returns.js", "data/sectors.js", "data/trend.js",
    "data/watchlists.js", "find.js", "icon-192.png", "icon-512.png", "icon-maskable.png",
    "icon.svg", "notice.js", "offline.js", "pages/account.js", "pages/api.js", "pages/gains.js",
    "pages/integrity.js", "pages/journal.js", "pages/login.js", "pages/market.js",
    "pages/portfolio.js", "pages/signals.js", "pages/status.js", "pages/symbol.js", "pages/sync.js",
    "pages/trades.js", "pages/trend.js", "pages/watch.js", "parts/allocation.js",
    "parts/appearance.js", "parts/awaited.js", "parts/best-signals.js", "parts/candle-table.js",
    "parts/columns.js", "parts/combobox.js", "parts/correction-form.js", "parts/dialog.js",
    "parts/figure-list.js", "parts/figures.js", "parts/first-steps.js", "parts/form.js",
    "parts/gains-agreement.js", "parts/gains-left-out.js", "parts/gains-sales.js",
    "parts/gains-totals.js", "parts/gains-worksheet.js", "parts/held.js", "parts/holding-parts.js",
    "parts/holdings-tab.js", "parts/holdings.js", "parts/import-list.js", "parts/import-preview.js",
    "parts/journal-form.js", "parts/keys.js", "parts/last-day.js", "parts/lists.js",
    "parts/lot-list.js", "parts/market-shares.js", "parts/menu.js", "parts/morning.js",
    "parts/mover-table.js", "parts/movers.js", "parts/no-trades.js", "parts/positions.js",
    "parts/proof-cards.js", "parts/proof-head.js", "parts/reorder.js", "parts/report.js",
    "parts/returns-tab.js", "parts/share-name.js", "parts/signal-table.js", "parts/star.js",
    "parts/table.js", "parts/trade-drop.js", "parts/trade-list.js", "parts/trend-point.js",
    "parts/trend-table.js", "parts/troubles.js", "parts/view.js", "parts/watch-table.js",
    "places.js", "reasons.js", "sheets/account.css", "sheets/api.css", "sheets/charts.css",
    "sheets/gains.css", "sheets/integrity.css", "sheets/market.css", "sheets/print.css",
    "sheets/signals.css", "sheets/status.css", "sheets/symbol.css", "sheets/sync.css",
    "sheets/trades.css", "sheets/trend.css", "strip.js", "style.css", "text.js", "text/account.js",
    "text/agreement.js", "text/allocation.js", "text/api.js", "text/awaited.js", "text/candles.js",
    "text/chart.js", "text/correction-form.js", "text/corrections.js", "text/estimate.js",
    "text/find.js", "text/first-steps.js", "text/gains.js", "text/held.js", "text/holding-parts.js",
    "text/import-preview.js", "text/integrity.js", "text/journal.js", "text/keys.js",
    "text/ledger.js", "text/lists.js", "text/login.js", "text/lots.js", "text/market.js",
    "text/morning.js", "text/no-prices.js", "text/no-trades.js", "text/portfolio.js",
    "text/positions.js", "text/proof-words.js", "text/reasons.js", "text/refused-lines.js",
    "text/returns.js", "text/shares.js", "text/signals.js", "text/status.js", "text/symbol.js",
    "text/sync.js", "text/trades.js", "text/trend.js", "text/watch.js", "theme.js",
};
