//! Sentences that go out with every list of signals.

/// What a confidence is.
pub const MEANING: &str = "Estimated chance that the close five sessions later has moved this way. \
    Mostly the market's own drift (see `base_rate`); the pattern's own two years weigh \
    samples/(samples+1000). Patterns have not been shown to add anything. Closes before 3 August \
    2026 are averages of the last half hour, later ones auction prices; what that changes is not \
    known yet.";

/// What a provisional signal is.
pub const PROVISIONAL_MEANING: &str = "Found in a day's candle before its official close, where a \
    pattern can appear and vanish; kept as first shown. Confirmed are those that the finished \
    candle has too, vanished those that it has not. Judged from the official close of their date, \
    not from the price at which they were shown.";

/// The disclaimer.
pub const DISCLAIMER: &str = "Information, not investment advice. No costs are counted; \
    entering at the next open would give less. Signals of one day are not independent. A universe \
    of today's members leaves out those that fell out of it, so that rises look likelier than they \
    were.";
