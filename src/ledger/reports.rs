//! Brokers' reports of exits and dividends: each format is a map of columns, and what its cells
//! mean.
//!
//! Lines are kept as the report states them. What they mean for the ledger is not decided here.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::ledger::cells;
use crate::ledger::file_format::FileFormat;
use crate::ledger::refusals::RefusedReason;
use crate::ledger::report_line::{Income, ReportLine, ReportSection};
use crate::ledger::row::Charges;
use crate::ledger::table::{CellKind, Header, TableRow, columns, plain};

columns! {
    /// Exits of broker A's report. Contracts lack some of the columns.
    struct ExitsA {
        symbol: needed ["symbol"],
        isin: optional ["isin"],
        acquired: needed ["entrydate"],
        sold: needed ["exitdate"],
        quantity: needed ["quantity"],
        cost: needed ["buyvalue"],
        proceeds: needed ["sellvalue"],
        gain: needed ["profit"],
        fmv: optional ["fairmarketvalue"],
        taxable: optional ["taxableprofit"],
        turnover: optional ["turnover"],
        brokerage: optional ["brokerage"],
        exchange: optional ["exchangetransactioncharges"],
        ipft: optional ["ipft"],
        sebi: optional ["sebicharges"],
        cgst: optional ["cgst"],
        sgst: optional ["sgst"],
        igst: optional ["igst"],
        stamp_duty: optional ["stampduty"],
        stt: optional ["stt"],
    }
}

columns! {
    /// Dividends of broker A's report.
    struct Dividends {
        symbol: needed ["symbol"],
        isin: optional ["isin"],
        ex_date: needed ["exdate"],
        quantity: needed ["quantity"],
        per_share: optional ["dividendpershare"],
        amount: needed ["netdividendamount"],
    }
}

columns! {
    /// Broker B's capital gains. An earlier download has no dates.
    struct ExitsB {
        symbol: needed ["stocksymbol"],
        isin: optional ["isin", "isincode"],
        quantity: needed ["qty", "quantity"],
        sold: optional ["saledate"],
        proceeds: needed ["salevalue"],
        sale_expenses: optional ["saleexpenses"],
        acquired: optional ["purchasedate"],
        rate: optional ["purchaserate"],
        fmv_rate: optional ["priceason31stjan2018"],
        considered: needed ["purchasevalue"],
        purchase_expenses: optional ["purchaseexpenses"],
        gain: needed ["profitloss"],
    }
}

#[derive(Clone, Copy)]
enum Columns {
    ExitsA(ExitsA),
    Dividends(Dividends),
    ExitsB(ExitsB),
}

/// A table of a report, once its header is known.
pub(crate) struct ReportTable {
    columns: Columns,
    today: Date,
    /// That of the lines that follow.
    section: Option<Section>,
}

/// What a title says of the lines below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub part: ReportSection,
    pub stt_paid: Option<bool>,
}

/// What one line of a report is.
pub(crate) enum ReportEntry {
    Exit(ReportLine),
    Dividend(Income),
    /// The title of the lines that follow; `None` if it is not known.
    Title(Option<ReportSection>),
    /// A total of the lines above, which is none of its own.
    Total(Option<Decimal>),
}

/// The section that a title, or the name of a member or sheet, speaks of.
pub(crate) fn section_of(title: &str) -> Option<Section> {
    let title = title.strip_suffix(".csv").unwrap_or(title);
    let name = plain(title);
    let part = [
        ("nonequity", ReportSection::NonEquity),
        ("mutualfund", ReportSection::Fund),
        ("buyback", ReportSection::Buyback),
        ("intraday", ReportSection::Intraday),
        ("speculat", ReportSection::Intraday),
        ("longterm", ReportSection::Long),
        ("shortterm", ReportSection::Short),
        ("commodit", ReportSection::Commodity),
        ("currency", ReportSection::Currency),
    ];
    let named = part
        .into_iter()
        .find(|(word, _)| name.contains(word))
        .map(|(_, part)| part);
    let part = named.or_else(|| name.ends_with("fo").then_some(ReportSection::Derivatives))?;
    let stt_paid = match () {
        () if name.contains("sttnotpaid") => Some(false),
        () if name.contains("sttpaid") => Some(true),
        () => None,
    };
    Some(Section { part, stt_paid })
}

/// The section of which a summary's line states the gain, with that.
pub(crate) fn summary_line(row: &TableRow) -> Option<(ReportSection, Decimal)> {
    let mut cells = row.cells();
    let label = cells.next().filter(|cell| cell.kind == CellKind::Text)?;
    let value = cells.next()?;
    if cells.next().is_some() || !plain(label.text).ends_with("profit") {
        return None;
    }
    let section = section_of(label.text)?;
    let value: f64 = value.text.parse().ok()?;
    let value = Decimal::try_from(value).ok()?;
    Some((section.part, value.round_dp(2)))
}

impl ReportTable {
    /// The table of a header. The name of its member or sheet may tell the section.
    pub(crate) fn find(header: &Header, name: &str, today: Date) -> Option<Self> {
        let exits_a = || ExitsA::find(header).map(Columns::ExitsA);
        let exits_b = || ExitsB::find(header).map(Columns::ExitsB);
        let dividends = || Dividends::find(header).map(Columns::Dividends);
        let columns = exits_a().or_else(exits_b).or_else(dividends)?;
        Some(Self {
            columns,
            today,
            section: section_of(name),
        })
    }

    /// Another header in the same table. Sections of a sheet have one each.
    pub(crate) fn has_header(&mut self, row: &TableRow) -> bool {
        let Some(found) = Self::find(&Header::of(row), "", self.today) else {
            return false;
        };
        self.columns = found.columns;
        true
    }

    pub(crate) fn format(&self) -> FileFormat {
        match self.columns {
            Columns::ExitsA(_) | Columns::Dividends(_) => FileFormat::ZerodhaTaxReport,
            Columns::ExitsB(_) => FileFormat::IciciCapitalGains,
        }
    }

    pub(crate) fn section(&self) -> Option<ReportSection> {
        self.section.map(|section| section.part)
    }

    /// A title above the header is of this table too.
    pub(crate) fn begin_section(&mut self, title: Option<Section>) {
        self.section = title.or(self.section);
    }

    pub(crate) fn read(&mut self, row: &TableRow) -> Result<ReportEntry, RefusedReason> {
        let mut cells = row.cells();
        let first = cells.next();
        let label = first
            .filter(|cell| cell.kind == CellKind::Text)
            .map(|cell| cell.text);
        let is_alone = cells.next().is_none();
        if let Some(title) = label.filter(|_| is_alone) {
            self.section = section_of(title);
            return Ok(ReportEntry::Title(self.section()));
        }
        if label.is_some_and(|label| is_total(&plain(label))) {
            let last = row
                .cells()
                .skip(1)
                .filter_map(|cell| cells::decimal(cell.text).ok())
                .last();
            return Ok(ReportEntry::Total(last));
        }
        match &self.columns {
            Columns::Dividends(at) => at.read(row, self.today).map(ReportEntry::Dividend),
            Columns::ExitsA(at) => {
                let section = self.section.ok_or(RefusedReason::SectionUnknown)?;
                at.read(row, section, self.today).map(ReportEntry::Exit)
            }
            Columns::ExitsB(at) => {
                let section = self.section.ok_or(RefusedReason::SectionUnknown)?;
                at.read(row, section, self.today).map(ReportEntry::Exit)
            }
        }
    }
}

fn is_total(label: &str) -> bool {
    matches!(label, "total" | "subtotal" | "grandtotal")
}

/// An amount without which the line says nothing.
fn needed(row: &TableRow, column: Option<u32>) -> Result<Decimal, RefusedReason> {
    cells::amount(row, column)?.ok_or(RefusedReason::AmountUnreadable)
}

/// A day that a line may lack.
fn day(row: &TableRow, column: Option<u32>, today: Date) -> Result<Option<Date>, RefusedReason> {
    match cells::date(row, column, today) {
        Err(RefusedReason::DateMissing) => Ok(None),
        read => read.map(Some),
    }
}

/// The sum of charges of which at least one is stated.
fn sum(parts: impl IntoIterator<Item = Option<Decimal>>) -> Option<Decimal> {
    parts.into_iter().flatten().reduce(|sum, part| sum + part)
}

impl ExitsA {
    fn read(
        &self,
        row: &TableRow,
        section: Section,
        today: Date,
    ) -> Result<ReportLine, RefusedReason> {
        let amount = |column| cells::amount(row, column);
        let levies = [
            self.exchange,
            self.ipft,
            self.sebi,
            self.cgst,
            self.sgst,
            self.igst,
        ];
        let mut other = Vec::with_capacity(levies.len());
        for levy in levies {
            other.push(amount(levy)?);
        }
        Ok(ReportLine {
            line: row.line,
            section: section.part,
            symbol: cells::symbol(row, self.symbol)?.into(),
            isin: cells::isin(row, self.isin)?,
            acquired_on: Some(cells::date(row, self.acquired, today)?),
            sold: Some(cells::date(row, self.sold, today)?),
            quantity: cells::quantity(row, self.quantity)?,
            cost: Some(needed(row, self.cost)?),
            cost_considered: None,
            proceeds: needed(row, self.proceeds)?,
            gain: needed(row, self.gain)?,
            taxable: amount(self.taxable)?,
            // Nought stands for none.
            fmv: amount(self.fmv)?.filter(|fmv| !fmv.is_zero()),
            turnover: amount(self.turnover)?,
            charges: Charges {
                brokerage: amount(self.brokerage)?,
                stt: amount(self.stt)?,
                stamp_duty: amount(self.stamp_duty)?,
                other: sum(other),
            },
            purchase_expenses: None,
            stt_paid: section.stt_paid,
        })
    }
}

impl ExitsB {
    fn read(
        &self,
        row: &TableRow,
        section: Section,
        today: Date,
    ) -> Result<ReportLine, RefusedReason> {
        let amount = |column| cells::amount(row, column);
        let quantity = cells::quantity(row, self.quantity)?;
        let of_all = |rate: Decimal| rate.checked_mul(quantity).map(|all| all.normalize());
        Ok(ReportLine {
            line: row.line,
            section: section.part,
            symbol: cells::symbol(row, self.symbol)?.into(),
            isin: cells::isin(row, self.isin)?,
            acquired_on: day(row, self.acquired, today)?,
            sold: day(row, self.sold, today)?,
            quantity,
            cost: amount(self.rate)?.and_then(of_all),
            cost_considered: Some(needed(row, self.considered)?),
            proceeds: needed(row, self.proceeds)?,
            gain: needed(row, self.gain)?,
            taxable: None,
            fmv: amount(self.fmv_rate)?.and_then(of_all),
            turnover: None,
            charges: Charges {
                other: amount(self.sale_expenses)?,
                ..Charges::default()
            },
            purchase_expenses: amount(self.purchase_expenses)?,
            stt_paid: section.stt_paid,
        })
    }
}

impl Dividends {
    fn read(&self, row: &TableRow, today: Date) -> Result<Income, RefusedReason> {
        Ok(Income {
            line: row.line,
            symbol: cells::symbol(row, self.symbol)?.into(),
            isin: cells::isin(row, self.isin)?,
            ex_date: cells::date(row, self.ex_date, today)?,
            quantity: cells::quantity(row, self.quantity)?,
            per_share: cells::amount(row, self.per_share)?,
            amount: needed(row, self.amount)?,
        })
    }
}
