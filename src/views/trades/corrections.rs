//! Documents of corrections.

use crate::views::values::{Day, Exact, Quantity, documents};

documents! {
    /// What a person says that no trade says. Each kind has its own members.
    #[derive(Default)]
    pub(crate) struct CorrectionView {
        pub kind: &'static str,
        pub account?: Option<String>,
        pub to?: Option<String>,
        pub symbol?: Option<String>,
        pub isin: String,
        pub new_isin?: Option<String>,
        pub ex_date?: Option<Day>,
        pub date?: Option<Day>,
        pub entered?: Option<Day>,
        pub numerator?: Option<u32>,
        pub denominator?: Option<u32>,
        pub record_date?: Option<Day>,
        pub allotment_date?: Option<Day>,
        pub quantity?: Option<Quantity>,
        pub price?: Option<Exact>,
        pub cost?: Option<Exact>,
        pub cost_percent?: Option<Exact>,
        pub cash?: Option<Exact>,
        pub how?: Option<&'static str>,
        pub class?: Option<&'static str>,
        pub what?: Option<&'static str>,
        pub note?: Option<String>,
    }

    /// A stored correction.
    pub(crate) struct StatedCorrection {
        pub id: String,
        pub correction: CorrectionView,
    }

    /// All corrections, in the order of their ids.
    pub(crate) struct Corrections {
        pub corrections: Vec<StatedCorrection>,
    }
}
