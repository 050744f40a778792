//! An operator's calendar file on arbitrary text: it is refused, or every date of it has a phase.
//!
//! `cargo fuzz run calendar fuzz/corpus/calendar fuzz/seeds/calendar`.

#![no_main]

use bhav::market::MarketCalendar;
use jiff::civil::date;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(calendar) = MarketCalendar::with_operator_text(text, "fuzz") else {
        return;
    };
    for day in date(2025, 12, 25)
        .series(jiff::Span::new().days(1))
        .take(400)
    {
        if calendar.is_trading_date(day) {
            assert_ne!(calendar.next_trading_date(day), Some(day));
            assert_ne!(calendar.previous_trading_date(day), Some(day));
        }
    }
});
