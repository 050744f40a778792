//! Documents of gains.

use crate::views::values::{Day, Exact, Money, Percent, Quantity, Simulated, documents};

documents! {
    /// One sale and one lot.
    pub(crate) struct PartView<'a> {
        /// Of a contract of derivatives: the opening date.
        pub acquired_on: Day,
        pub entered: Day,
        pub how: &'a str,
        pub quantity: Quantity,
        pub proceeds: Option<Money>,
        pub charges: Option<Money>,
        pub cost: Option<Money>,
        /// Value on 31 January 2018 of all the shares.
        pub fmv: Option<Money>,
        pub cost_considered: Option<Money>,
        pub gain: Option<Money>,
        /// `short`, `long`, `intraday`, `fno` or `buyback`.
        pub class: &'a str,
        pub section: Option<&'a str>,
        pub rate_pct: Option<Percent>,
        /// All that cuts it; none if it is proved.
        pub reasons: Vec<&'a str>,
    }

    /// A sale, or the closing of a contract.
    pub(crate) struct SaleView<'a> {
        pub sold: Day,
        pub account: &'a str,
        pub isin: Option<&'a str>,
        pub symbol: Option<&'a str>,
        pub quantity: Quantity,
        pub proceeds: Option<Money>,
        pub charges: Option<Money>,
        /// `null` if a part of it is not known.
        pub cost: Option<Money>,
        pub gain: Option<Money>,
        /// Sold without a purchase.
        pub uncovered: Quantity,
        pub proved: bool,
        /// Whether the broker's report says the same; `null` if none speaks of it.
        pub agreed: Option<bool>,
        pub lots: Vec<PartView<'a>>,
        pub simulated?: Simulated,
    }

    /// Sums by class.
    pub(crate) struct ByClassView {
        pub short: Option<Money>,
        pub long: Option<Money>,
        pub intraday: Option<Money>,
        pub fno: Option<Money>,
    }

    /// Buybacks, which stand apart.
    pub(crate) struct BuybackView {
        pub exempt: Option<Money>,
        pub deemed_dividend: Option<Money>,
        pub short: Option<Money>,
        pub long: Option<Money>,
    }

    /// A time of the year with its rates.
    pub(crate) struct WindowView {
        pub from: Day,
        pub to: Day,
        pub short: Option<Money>,
        pub long: Option<Money>,
        pub short_pct: Option<Percent>,
        pub long_pct: Option<Percent>,
    }

    /// Gains until one of the dates by which they are asked for.
    pub(crate) struct PeriodView {
        pub to: Day,
        pub short: Option<Money>,
        pub long: Option<Money>,
    }

    /// Sums of what is proved, in rupees.
    pub(crate) struct TotalsView {
        pub short: Option<Money>,
        pub long: Option<Money>,
        pub intraday: Option<Money>,
        pub fno: Option<Money>,
        /// Sum of absolute results, as the broker counts it.
        pub fno_turnover: Option<Money>,
        /// Sums of negative parts.
        pub losses: ByClassView,
        pub buyback: BuybackView,
        pub fractions: Option<Money>,
        /// As reports state them; `null` if none does.
        pub dividends: Option<Money>,
        pub windows: Vec<WindowView>,
        pub periods: Vec<PeriodView>,
    }

    /// What is in no total.
    pub(crate) struct LeftOutView<'a> {
        pub account: &'a str,
        pub isin: Option<&'a str>,
        pub symbol: Option<&'a str>,
        pub reason: &'a str,
        pub quantity: Option<Quantity>,
        pub proceeds: Option<Money>,
        /// Of bonus stripping: the loss that the law ignores.
        pub ignored_loss: Option<Money>,
    }

    /// A dividend, as a report states it.
    pub(crate) struct IncomeView<'a> {
        pub account: &'a str,
        pub isin: Option<&'a str>,
        pub symbol: &'a str,
        pub ex_date: Day,
        pub quantity: Quantity,
        pub per_share: Option<Exact>,
        pub amount: Money,
    }

    /// A rule that was used.
    pub(crate) struct RuleView<'a> {
        pub id: &'a str,
        pub says: &'a str,
        pub section: Option<&'a str>,
        pub known_until: Day,
        pub source: &'a str,
    }

    /// A financial year's gains of one person. No tax is computed.
    pub(crate) struct GainsView<'a> {
        pub fy: String,
        pub person: &'a str,
        /// Everyone to whom an account belongs.
        pub persons: Vec<&'a str>,
        /// The years of the person's trades.
        pub years: Vec<String>,
        pub sales: Vec<SaleView<'a>>,
        pub totals: TotalsView,
        /// Sums of what only reports say, as they state it.
        pub totals_stated: ByClassView,
        pub left_out: Vec<LeftOutView<'a>>,
        pub income: Vec<IncomeView<'a>>,
        /// How many sales have charges: `all`, `some` or `none`.
        pub charges: &'a str,
        pub rules: Vec<RuleView<'a>>,
        pub next_cursor: Option<String>,
    }
}
