//! Why a file, or a line of one, is not taken: the words and the texts that a person reads.
//!
//! A line that is not taken is listed with its number, so that none is lost unseen.

use std::io::{self, ErrorKind};

use crate::base::words;

/// Why a whole file is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileError {
    #[error("the file has more than 200,000 rows: export it in parts, such as a year each")]
    TooManyRows,
    #[error("the file grows too much when it is unpacked: {0}")]
    Expands(Expansion),
    #[error("the file is not understood: {cause}")]
    NotUnderstood {
        cause: Cause,
        /// Its first rows, cut and cleaned.
        seen: Vec<String>,
    },
    #[error("the file is encrypted: save it without a password and send that")]
    Encrypted,
    #[error("reading the file took too long")]
    TooSlow,
    #[error("the file could not be read to its end: {0}")]
    Io(String),
}

impl FileError {
    /// Not understood, before any row was seen.
    pub(crate) fn not_understood(cause: Cause) -> Self {
        Self::NotUnderstood {
            cause,
            seen: Vec::new(),
        }
    }

    /// What stopped a reader: ours if it was raised below the reader, `cause` if the bytes are not
    /// what they should be.
    pub(crate) fn below(error: &io::Error, cause: Cause) -> Self {
        if let Some(raised) = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Self>())
        {
            return raised.clone();
        }
        match error.kind() {
            ErrorKind::InvalidInput
            | ErrorKind::InvalidData
            | ErrorKind::UnexpectedEof
            | ErrorKind::FileTooLarge
            | ErrorKind::Other => Self::not_understood(cause),
            _ => Self::Io(error.to_string()),
        }
    }
}

/// Which limit of unpacking was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Expansion {
    #[error("all of it is over 256 MiB")]
    Whole,
    #[error("a part of it becomes more than 200 times as large")]
    Ratio,
    #[error("the texts that its sheets share are over 16 MiB")]
    SharedStrings,
    #[error("a workbook inside it is over 32 MiB")]
    Nested,
}

/// What is wrong with a file that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cause {
    #[error("none of its first 30 rows is the header of a file that is known")]
    NoHeader,
    #[error("it is empty")]
    Empty,
    #[error("it is a ZIP that is damaged, or packed in a way that is not read")]
    BrokenZip,
    #[error("it is a ZIP of more than 200 files")]
    TooManyEntries,
    #[error("it is a ZIP with two files of one name")]
    RepeatedEntry,
    #[error("it has a ZIP inside a ZIP")]
    NestedZip,
    #[error("the XML of its workbook is damaged")]
    BrokenXml,
    #[error("the XML of its workbook has a document type, which no workbook needs")]
    DocumentType,
    #[error("it is an old binary workbook: save it as .xlsx or CSV")]
    OldWorkbook,
    #[error("its text is UTF-16: save it as UTF-8")]
    Utf16,
    #[error("it has bytes of zero, so it is no text")]
    ZeroBytes,
    #[error("a line of it is over 64 KiB")]
    LongLine,
    #[error("a row of it has more than 1,000 cells")]
    ManyCells,
}

words! {
    /// Why one line is not taken.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum RefusedReason {
        SymbolMissing = "symbol_missing",
        SymbolTooLong = "symbol_over_64_letters",
        IsinMissing = "isin_missing",
        IsinMalformed = "isin_malformed",
        /// Commodity and foreign exchanges among them.
        OtherExchange = "exchange_not_nse_or_bse",
        SegmentUnknown = "segment_unknown",
        SideUnknown = "side_not_buy_or_sell",
        QuantityUnreadable = "quantity_not_a_number",
        QuantityNotPositive = "quantity_not_above_0",
        QuantityTooLarge = "quantity_over_1000000000000",
        QuantityTooPrecise = "quantity_over_9_decimals",
        PriceUnreadable = "price_not_a_number",
        PriceNotPositive = "price_not_above_0",
        PriceTooLarge = "price_over_1000000000000",
        PriceTooPrecise = "price_over_9_decimals",
        DateMissing = "date_missing",
        DateUnreadable = "date_not_understood",
        /// Such as 30 February.
        DateImpossible = "date_impossible",
        DateInFuture = "date_in_future",
        DateTooEarly = "date_before_1990",
        TimeUnreadable = "time_not_understood",
        ExpiryUnreadable = "expiry_not_understood",
        AuctionUnknown = "auction_not_true_or_false",
        IdTooLong = "id_over_64_letters",
        AmountUnreadable = "amount_not_a_number",
        /// What a spreadsheet computes is no statement of the broker's.
        Formula = "formula",
        /// Such as `#N/A`.
        CellError = "cell_holds_an_error",
        QuoteNotClosed = "quote_not_closed",
        NotUtf8 = "not_utf8",
        /// The lines before it are of another client.
        OtherClient = "other_client_id",
        /// Rows of one table are of one section, and this one is under none.
        SectionUnknown = "section_unknown",
    }
}

/// A line that is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub line: u32,
    pub reason: RefusedReason,
}
