//! Which rows of all imports are one trade.
//!
//! A function of the set of live rows alone: the order of the imports and their repetition change
//! nothing. A choice between rows of one trade goes by what they say, never by where they stand.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compact_str::CompactString;
use foldhash::{HashMap, HashMapExt, HashSet};
use jiff::civil::{Date, Time};
use rust_decimal::Decimal;
use sha2::{Digest, Sha256};

use crate::base::Isin;
use crate::base::hex::hex;
use crate::base::symbol::Exchange;
use crate::base::words::words;
use crate::ledger::amount::Amount;
use crate::ledger::averaged_orders;
use crate::ledger::row::{AccountName, Charges, Mark, Row, RowCharges, Segment, Side};
use crate::ledger::securities::{Securities, Security};

/// The import of broker B's sync: one row an order, with an average price.
pub(crate) const AVERAGED_FORMAT: &str = "sync_b";

/// Value of a trade from which a transaction tax of 0, in whole rupees, says that none was paid.
const STT_VALUE_MIN: Decimal = Decimal::ONE_THOUSAND;

/// The rows of one import.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImportedRows<'a> {
    pub import: &'a str,
    pub account: &'a AccountName,
    pub format: &'a str,
    pub rows: &'a [Row],
}

/// What is known of a symbol beside the rows themselves.
pub(crate) trait IsinLookup {
    /// Of the account's synced holdings.
    fn held(&self, account: &AccountName, exchange: Exchange, symbol: &str) -> Vec<Isin>;
    /// Of broker B's list of securities, for its own codes.
    fn listed(&self, account: &AccountName, exchange: Exchange, symbol: &str) -> Vec<Isin>;
    /// Of the corrections of kind `symbol`.
    fn said(&self, account: &AccountName, symbol: &str) -> Vec<Isin>;
}

words! {
    /// Which of two rows with one id is right.
    pub(crate) enum Keep {
        First = "first",
        Second = "second",
    }
}

/// A person's choices, by the conflict's id.
pub(crate) type Choices = BTreeMap<String, Keep>;

/// What the merging of rows goes by.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub securities: &'a Securities,
    pub choices: &'a Choices,
    pub isins: &'a dyn IsinLookup,
}

/// An import that a trade's rows are of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ImportName {
    pub id: String,
    pub format: String,
}

/// A row of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    /// Index in `Trades::imports`.
    pub import: u32,
    pub line: u32,
}

/// Price and quantity, by which two rows with one id are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Figures {
    pub price: Decimal,
    pub quantity: Decimal,
}

/// One execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trade {
    pub account: AccountName,
    pub date: Date,
    pub time: Option<Time>,
    pub symbol: Arc<str>,
    /// As the rows have it or as it was found, which may be an older one of the security.
    pub isin: Option<Isin>,
    pub security: Security,
    pub exchange: Exchange,
    pub segment: Segment,
    pub series: Option<Arc<str>>,
    pub side: Side,
    pub quantity: Decimal,
    pub price: Decimal,
    pub product: Option<Arc<str>>,
    pub auction: bool,
    pub trade_id: Option<CompactString>,
    pub order_id: Option<CompactString>,
    pub expiry: Option<Date>,
    pub charges: RowCharges,
    pub stt_paid: Option<bool>,
    pub mark: Option<Mark>,
    /// Which of several equal trades without an id it is, from 0.
    pub ordinal: u32,
    pub sources: Box<[Source]>,
}

/// Two rows with one id that differ. Neither counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub id: String,
    /// What both say. Its quantity and price are those of `first` and mean nothing.
    pub trade: Trade,
    pub first: Figures,
    pub second: Figures,
}

/// The trades that the rows of all imports make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trades {
    /// In order of their ids.
    pub imports: Vec<ImportName>,
    /// In the order of a day: date, time, id, exchange, price, quantity.
    pub all: Vec<Trade>,
    pub conflicts: Vec<Conflict>,
}

impl Trades {
    /// Marks the trades that a replay wants to be looked at, by their place, where they have no
    /// other mark.
    pub(crate) fn mark_checks(&mut self, places: &BTreeSet<u32>) {
        for place in places {
            if let Some(trade) = self.all.get_mut(*place as usize) {
                trade.mark.get_or_insert(Mark::Check);
            }
        }
    }
}

impl Trade {
    /// A text that stays as long as what identifies the trade does.
    pub(crate) fn id(&self) -> String {
        match &self.trade_id {
            Some(id) => digest(&self.identity(id)),
            None => {
                let security = match &self.security {
                    Security::Known(isin) => isin.as_str(),
                    Security::Unknown(symbol) | Security::Contract(symbol) => symbol,
                };
                let price = self.price.normalize();
                let quantity = self.quantity.normalize();
                let figures = format!("{price}|{quantity}|{}", self.ordinal);
                digest(&format!("{}|{security}|{figures}", self.identity("")))
            }
        }
    }

    /// What a file states of its charges, but for the securities transaction tax, which is never
    /// deducted.
    pub(crate) fn deductible(&self) -> Option<Amount> {
        let charges = &self.charges;
        let stated = [charges.brokerage, charges.stamp_duty, charges.other];
        let mut stated = stated.into_iter().flatten().map(Amount::from);
        let first = stated.next()?;
        Some(stated.fold(first, |sum, one| sum.plus(&one)))
    }

    /// Whether its file says that no transaction tax was paid.
    pub(crate) fn is_untaxed(&self) -> bool {
        let nothing = self.charges.stt.is_some_and(|stt| stt.is_zero());
        let is_large = || Amount::product(self.price, self.quantity) >= STT_VALUE_MIN.into();
        self.stt_paid == Some(false) || (nothing && is_large())
    }

    fn identity(&self, id: &str) -> String {
        let place = match &self.trade_id {
            Some(_) => format!("{}|{}", self.exchange, self.segment),
            None => String::new(),
        };
        format!("{}|{place}|{}|{}|{id}", self.account.as_str(), self.date, self.side)
    }

    /// The order of the trades of one day, and of days. What is equal in all that orders a day goes
    /// by the rest that it says.
    pub(crate) fn cmp_in_time(&self, other: &Self) -> Ordering {
        let when = |trade: &Self| (trade.date, trade.time.is_none(), trade.time);
        let digits = |trade: &Self| trade.trade_id.as_deref().map_or(0, str::len);
        let figures = |trade: &Self| (trade.price, trade.quantity);
        let marks = |trade: &Self| (trade.auction, trade.expiry, trade.stt_paid, trade.mark);
        when(self)
            .cmp(&when(other))
            .then_with(|| digits(self).cmp(&digits(other)))
            .then_with(|| self.trade_id.cmp(&other.trade_id))
            .then_with(|| self.exchange.as_str().cmp(other.exchange.as_str()))
            .then_with(|| figures(self).cmp(&figures(other)))
            .then_with(|| self.account.cmp(&other.account))
            .then_with(|| self.security.cmp(&other.security))
            .then_with(|| self.side.cmp(&other.side))
            .then_with(|| self.segment.cmp(&other.segment))
            .then_with(|| self.symbol.cmp(&other.symbol))
            .then_with(|| self.isin.cmp(&other.isin))
            .then_with(|| self.order_id.cmp(&other.order_id))
            .then_with(|| self.series.cmp(&other.series))
            .then_with(|| self.product.cmp(&other.product))
            .then_with(|| self.charges.cmp(&other.charges))
            .then_with(|| marks(self).cmp(&marks(other)))
            .then_with(|| self.sources.cmp(&other.sources))
    }

    /// What equal trades without an id have in common.
    fn figure_key(&self) -> (&AccountName, Date, &Security, Side, Figures) {
        let figures = Figures {
            price: self.price,
            quantity: self.quantity,
        };
        (&self.account, self.date, &self.security, self.side, figures)
    }
}

/// Sixteen hexadecimal digits: of 300,000 trades two have the same in one of 400 million ledgers.
fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..8])
}

/// The trades of all live imports.
pub(crate) fn trades(imports: &[ImportedRows<'_>], known: Known<'_>) -> Trades {
    Merge::of(imports, known).trades()
}

/// What an import that is not live yet would add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preview {
    /// Lines whose trade no row shows yet.
    pub new: Vec<u32>,
    /// Lines whose trade a live row, or an earlier line, shows already.
    pub known: Vec<u32>,
    pub conflicts: Vec<ConflictingLine>,
}

/// A line with the id of a stored trade and other figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConflictingLine {
    pub line: u32,
    /// The id of the trade that both are.
    pub trade: String,
    pub stated: Figures,
    pub stored: Figures,
}

/// What the rows of `added` would be among those of `live`.
pub(crate) fn preview(
    live: &[ImportedRows<'_>],
    added: ImportedRows<'_>,
    known: Known<'_>,
) -> Preview {
    let imports: Vec<ImportedRows<'_>> = live.iter().copied().chain([added]).collect();
    let merge = Merge::of(&imports, known);
    let added_at = live.len() as u32;
    let is_live = |row: &&u32| merge.seen[**row as usize].import != added_at;
    let mut outcomes: BTreeMap<u32, Outcome> = BTreeMap::new();
    for draft in &merge.drafts {
        let is_known = draft
            .rows
            .iter()
            .chain(&draft.averaged)
            .any(|row| is_live(&row));
        let mut stored: Vec<Figures> = draft
            .rows
            .iter()
            .filter(is_live)
            .map(|row| merge.figures(*row))
            .collect();
        stored.sort_unstable();
        let mut rows: Vec<u32> = draft
            .rows
            .iter()
            .chain(&draft.averaged)
            .filter(|row| !is_live(row))
            .copied()
            .collect();
        rows.sort_unstable();
        for row in rows {
            let stated = merge.figures(row);
            let has_id = merge.seen[row as usize].row.trade_id.is_some();
            let outcome = match stored.first() {
                None if is_known => Outcome::Known,
                None => Outcome::New,
                Some(_) if !has_id || stored.contains(&stated) => Outcome::Known,
                Some(first) => Outcome::Conflict(ConflictingLine {
                    line: merge.seen[row as usize].row.line,
                    trade: merge.trade(draft).id(),
                    stated,
                    stored: if stored.contains(&draft.figures) {
                        draft.figures
                    } else {
                        *first
                    },
                }),
            };
            stored.push(stated);
            outcomes.insert(row, outcome);
        }
    }
    let mut preview = Preview::default();
    for (row, outcome) in outcomes {
        match outcome {
            Outcome::New => preview.new.push(merge.seen[row as usize].row.line),
            Outcome::Known => preview.known.push(merge.seen[row as usize].row.line),
            Outcome::Conflict(conflict) => preview.conflicts.push(conflict),
        }
    }
    preview
}

enum Outcome {
    New,
    Known,
    Conflict(ConflictingLine),
}

/// What a row is of, without a copy of its symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Named<'a> {
    Known(Isin),
    Unknown(&'a str),
    Contract(&'a str),
}

/// A row, and what it is of.
#[derive(Clone, Copy)]
struct Seen<'a> {
    import: u32,
    account: &'a AccountName,
    row: &'a Row,
    /// The row's own ISIN, or the one that was found.
    isin: Option<Isin>,
    named: Named<'a>,
}

/// By what an exchange identifies an execution. Symbol and ISIN stand outside: both may change.
type IdKey<'a> = (&'a AccountName, Exchange, Segment, Date, Side, &'a str);

/// An account's day of one security and side.
type DayKey<'a> = (&'a AccountName, Date, Named<'a>, Side);

/// By what rows without an id are compared.
type FigureKey<'a> = (&'a AccountName, Date, Named<'a>, Side, Figures);

/// A trade while its rows are gathered. Rows are indices in `Merge::seen`.
struct Draft {
    rows: Vec<u32>,
    /// Rows of averaged orders that this trade is a part of. They only show that it is known.
    averaged: Vec<u32>,
    figures: Figures,
    /// Of a conflict that is not decided, of which there are few.
    conflict: Option<Box<(String, Figures)>>,
    ordinal: u32,
}

impl Draft {
    fn new(rows: Vec<u32>, figures: Figures, ordinal: u32) -> Self {
        Self {
            rows,
            averaged: Vec::new(),
            figures,
            conflict: None,
            ordinal,
        }
    }
}

struct Merge<'a> {
    imports: &'a [ImportedRows<'a>],
    seen: Vec<Seen<'a>>,
    drafts: Vec<Draft>,
}

impl<'a> Merge<'a> {
    fn of(imports: &'a [ImportedRows<'a>], known: Known<'_>) -> Self {
        let mut merge = Self {
            imports,
            seen: seen(imports, known),
            drafts: Vec::new(),
        };
        let mut by_id: HashMap<IdKey<'a>, Vec<u32>> = HashMap::new();
        let mut detailed: HashMap<FigureKey<'a>, Vec<u32>> = HashMap::new();
        let mut averaged: HashMap<FigureKey<'a>, Vec<u32>> = HashMap::new();
        for (at, seen) in merge.seen.iter().enumerate() {
            let at = at as u32;
            if let Some(id) = &seen.row.trade_id {
                let row = seen.row;
                let key =
                    (seen.account, row.exchange, row.segment, row.date, row.side, id.as_str());
                by_id.entry(key).or_default().push(at);
            } else if imports[seen.import as usize].format == AVERAGED_FORMAT {
                averaged.entry(merge.figure_key(at)).or_default().push(at);
            } else {
                detailed.entry(merge.figure_key(at)).or_default().push(at);
            }
        }
        merge.drafts.reserve_exact(by_id.len());
        for (_, rows) in by_id {
            let draft = merge.with_id(rows, known.choices);
            merge.drafts.push(draft);
        }
        merge.meet(detailed);
        merge.absorb_averaged(averaged);
        merge
    }

    fn figures(&self, row: u32) -> Figures {
        let row = self.seen[row as usize].row;
        Figures {
            price: row.price,
            quantity: row.quantity,
        }
    }

    fn figure_key(&self, row: u32) -> FigureKey<'a> {
        let seen = &self.seen[row as usize];
        (seen.account, seen.row.date, seen.named, seen.row.side, self.figures(row))
    }

    /// The same by its symbol, whatever its security.
    fn symbol_key(&self, row: u32) -> FigureKey<'a> {
        let seen = &self.seen[row as usize];
        let symbol = Named::Unknown(&seen.row.symbol);
        (seen.account, seen.row.date, symbol, seen.row.side, self.figures(row))
    }

    /// The trade of rows with one id. Those that differ are compared two at a time, by price and
    /// quantity, so that each choice is between a first and a second.
    fn with_id(&self, mut rows: Vec<u32>, choices: &Choices) -> Draft {
        if rows.len() == 1 {
            let figures = self.figures(rows[0]);
            return Draft::new(rows, figures, 0);
        }
        rows.sort_by(|left, right| self.cmp_rows(*left, *right));
        let mut said: Vec<Figures> = rows.iter().map(|row| self.figures(*row)).collect();
        said.sort_unstable();
        said.dedup();
        let mut draft = Draft::new(rows, said[0], 0);
        for second in &said[1..] {
            let trade = self.trade(&draft).id();
            let first = draft.figures;
            let pair = [first.price, first.quantity, second.price, second.quantity];
            let id = digest(&format!("{trade}|{:?}", pair.map(|figure| figure.normalize())));
            match choices.get(&id) {
                Some(Keep::First) => {}
                Some(Keep::Second) => draft.figures = *second,
                None => {
                    draft.conflict = Some(Box::new((id, *second)));
                    break;
                }
            }
        }
        draft
    }

    /// Rows without an id: those of one import count up, those of several are the same. Then each
    /// meets a trade with an id that says the same.
    fn meet(&mut self, groups: HashMap<FigureKey<'a>, Vec<u32>>) {
        let mut drafts: Vec<(Draft, FigureKey<'a>)> = Vec::new();
        for (key, rows) in groups {
            drafts.extend(self.counted(rows).into_iter().map(|draft| (draft, key)));
        }
        if drafts.is_empty() {
            return;
        }
        // What says most has the first choice. A row of an unknown security may also be a row of
        // the same symbol whose security is known, so these come last.
        drafts.sort_by(|(left, left_key), (right, right_key)| {
            let vague = |key: &FigureKey<'_>| matches!(key.2, Named::Unknown(_));
            let details = |draft: &Draft| {
                let row = self.seen[draft.rows[0] as usize].row;
                Reverse(u8::from(row.time.is_some()) + u8::from(row.order_id.is_some()))
            };
            (vague(left_key), details(left))
                .cmp(&(vague(right_key), details(right)))
                .then_with(|| self.cmp_rows(left.rows[0], right.rows[0]))
                .then_with(|| left.ordinal.cmp(&right.ordinal))
        });
        let mut targets = Targets::sought(self, &drafts);
        for at in 0..self.drafts.len() {
            targets.add(self, at as u32);
        }
        for (draft, key) in drafts {
            match targets.find(self, &draft, key) {
                Some(target) => self.drafts[target as usize].rows.extend(draft.rows),
                None => {
                    self.drafts.push(draft);
                    targets.add(self, self.drafts.len() as u32 - 1);
                }
            }
        }
    }

    /// The k-th of the equal rows of each import is the k-th trade.
    fn counted(&self, mut rows: Vec<u32>) -> Vec<Draft> {
        let figures = self.figures(rows[0]);
        if rows.len() == 1 {
            return vec![Draft::new(rows, figures, 0)];
        }
        rows.sort_by(|left, right| self.cmp_rows(*left, *right));
        let mut imports: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in rows {
            imports
                .entry(self.seen[row as usize].import)
                .or_default()
                .push(row);
        }
        let count = imports.values().map(Vec::len).max().unwrap_or_default();
        let mut drafts = Vec::with_capacity(count);
        for ordinal in 0..count {
            let mut rows: Vec<u32> = imports
                .values()
                .filter_map(|rows| rows.get(ordinal).copied())
                .collect();
            // The import that shows most of them says most of each.
            rows.sort_by(|left, right| {
                let shown = |row: u32| Reverse(imports[&self.seen[row as usize].import].len());
                shown(*left)
                    .cmp(&shown(*right))
                    .then_with(|| self.cmp_rows(*left, *right))
            });
            drafts.push(Draft::new(rows, figures, ordinal as u32));
        }
        drafts
    }

    /// Compares what two rows say, apart from figures, so that where they stand decides nothing.
    fn cmp_rows(&self, left: u32, right: u32) -> Ordering {
        let left = &self.seen[left as usize];
        let right = &self.seen[right as usize];
        let lacks = |seen: &Seen<'_>| {
            let row = seen.row;
            (
                row.trade_id.is_none(),
                row.isin.is_none(),
                row.time.is_none(),
                row.order_id.is_none(),
            )
        };
        let named = |seen: &Seen<'a>| (seen.account, seen.named, seen.row.side, seen.isin);
        let placed = |seen: &Seen<'a>| {
            let row = seen.row;
            (row.date, row.exchange, row.time, &row.order_id, &row.trade_id, &row.symbol)
        };
        let rest = |seen: &Seen<'a>| {
            let row = seen.row;
            let marks = (row.mark, row.auction, row.stt_paid, row.expiry);
            (&row.series, &row.product, *row.charges, marks, row.price, row.quantity)
        };
        lacks(left)
            .cmp(&lacks(right))
            .then_with(|| named(left).cmp(&named(right)))
            .then_with(|| placed(left).cmp(&placed(right)))
            .then_with(|| rest(left).cmp(&rest(right)))
    }

    /// Averaged orders that detailed trades show are no trades of their own.
    fn absorb_averaged(&mut self, groups: HashMap<FigureKey<'a>, Vec<u32>>) {
        if groups.is_empty() {
            return;
        }
        let orders = self.averaged_orders(groups);
        let mut details: HashMap<DayKey<'a>, Vec<u32>> = HashMap::new();
        for (at, draft) in self.drafts.iter().enumerate() {
            let (account, date, named, side, _) = self.figure_key(draft.rows[0]);
            let day = (account, date, named, side);
            if draft.conflict.is_none() && orders.contains_key(&day) {
                details.entry(day).or_default().push(at as u32);
            }
        }
        for (day, mut orders) in orders {
            let mut details = details.remove(&day).unwrap_or_default();
            let by_content = |left: &Draft, right: &Draft| {
                let figures = left.figures.cmp(&right.figures);
                let content = || self.cmp_rows(left.rows[0], right.rows[0]);
                figures
                    .then_with(content)
                    .then(left.ordinal.cmp(&right.ordinal))
            };
            orders.sort_by(by_content);
            let drafts = &self.drafts;
            details.sort_by(|left, right| {
                by_content(&drafts[*left as usize], &drafts[*right as usize])
            });
            let executions: Vec<_> = details
                .iter()
                .map(|at| self.execution(&drafts[*at as usize]))
                .collect();
            let averages: Vec<_> = orders.iter().map(|order| self.execution(order)).collect();
            let parts = averaged_orders::parts(&averages, &executions);
            for (order, parts) in orders.into_iter().zip(parts) {
                if parts.is_empty() {
                    self.drafts.push(order);
                    continue;
                }
                for part in parts {
                    let detail = &mut self.drafts[details[part] as usize];
                    detail.averaged.extend(&order.rows);
                }
            }
        }
    }

    /// The averaged orders of each day. Rows with one order's number are that order while it was
    /// being filled, so the one with the most shares is what came of it.
    fn averaged_orders(
        &self,
        groups: HashMap<FigureKey<'a>, Vec<u32>>,
    ) -> HashMap<DayKey<'a>, Vec<Draft>> {
        let mut orders: HashMap<DayKey<'a>, Vec<Draft>> = HashMap::new();
        let mut numbered: HashMap<(DayKey<'a>, &'a str), Vec<u32>> = HashMap::new();
        for ((account, date, named, side, _), rows) in groups {
            let day = (account, date, named, side);
            let mut bare = Vec::new();
            for row in rows {
                match self.seen[row as usize].row.order_id.as_deref() {
                    Some(order) => numbered.entry((day, order)).or_default().push(row),
                    None => bare.push(row),
                }
            }
            let of_day = orders.entry(day).or_default();
            if !bare.is_empty() {
                of_day.extend(self.counted(bare));
            }
        }
        for ((day, _), mut rows) in numbered {
            rows.sort_by(|left, right| self.cmp_rows(*left, *right));
            let filled = rows.iter().map(|row| self.figures(*row));
            let last = filled.max_by_key(|figures| (figures.quantity, figures.price));
            if let Some(figures) = last {
                orders
                    .entry(day)
                    .or_default()
                    .push(Draft::new(rows, figures, 0));
            }
        }
        orders
    }

    fn execution(&self, draft: &Draft) -> averaged_orders::Execution<'a> {
        averaged_orders::Execution {
            order_id: self.said(draft, |row| row.order_id.as_deref()),
            quantity: draft.figures.quantity,
            price: draft.figures.price,
        }
    }

    /// The first thing that any row of a draft says.
    fn said<T>(&self, draft: &Draft, what: impl Fn(&'a Row) -> Option<T>) -> Option<T> {
        draft
            .rows
            .iter()
            .find_map(|row| what(self.seen[*row as usize].row))
    }

    fn trade(&self, draft: &Draft) -> Trade {
        self.named_trade(draft, &mut Names::default())
    }

    /// The trade of a draft. What several rows say goes by the order of what they say.
    fn named_trade(&self, draft: &Draft, names: &mut Names<'a>) -> Trade {
        let mut rows = draft.rows.clone();
        if rows.len() > 1 {
            rows.sort_by(|left, right| self.cmp_rows(*left, *right));
        }
        let seen = |row: &u32| &self.seen[*row as usize];
        let first = seen(&rows[0]);
        let (isin, named) = self.security(&rows);
        let said = |what: &dyn Fn(&'a Row) -> Option<&'a str>| {
            rows.iter().find_map(|row| what(seen(row).row))
        };
        let charges = rows.iter().map(|row| &seen(row).row.charges);
        let unpaid = rows.iter().any(|row| seen(row).row.stt_paid == Some(false));
        let paid = rows.iter().any(|row| seen(row).row.stt_paid == Some(true));
        let mut sources: Vec<Source> = rows
            .iter()
            .chain(&draft.averaged)
            .map(|row| Source {
                import: seen(row).import,
                line: seen(row).row.line,
            })
            .collect();
        sources.sort_unstable();
        Trade {
            account: first.account.clone(),
            date: first.row.date,
            time: rows.iter().find_map(|row| seen(row).row.time),
            symbol: names.of(&first.row.symbol),
            isin,
            security: match named {
                Named::Known(isin) => Security::Known(isin),
                Named::Unknown(symbol) => Security::Unknown(names.of(symbol)),
                Named::Contract(symbol) => Security::Contract(names.of(symbol)),
            },
            exchange: first.row.exchange,
            segment: first.row.segment,
            series: said(&|row| row.series.as_deref()).map(|series| names.of(series)),
            side: first.row.side,
            quantity: draft.figures.quantity,
            price: draft.figures.price,
            product: said(&|row| row.product.as_deref()).map(|product| names.of(product)),
            auction: rows.iter().any(|row| seen(row).row.auction),
            trade_id: said(&|row| row.trade_id.as_deref()).map(Into::into),
            order_id: said(&|row| row.order_id.as_deref()).map(CompactString::from),
            expiry: rows.iter().find_map(|row| seen(row).row.expiry),
            charges: charges
                .max_by_key(|charges| (stated(charges), *charges))
                .cloned()
                .unwrap_or_default(),
            stt_paid: if unpaid {
                Some(false)
            } else {
                paid.then_some(true)
            },
            mark: match &draft.conflict {
                Some(_) => Some(Mark::Conflict),
                None => rows.iter().filter_map(|row| seen(row).row.mark).min(),
            },
            ordinal: draft.ordinal,
            sources: sources.into(),
        }
    }

    /// The ISIN of a trade's rows. Two that no split joins are none.
    fn security(&self, rows: &[u32]) -> (Option<Isin>, Named<'a>) {
        let first = &self.seen[rows[0] as usize];
        let mut known = rows.iter().filter_map(|row| {
            let seen = &self.seen[*row as usize];
            matches!(seen.named, Named::Known(_)).then_some((seen.isin, seen.named))
        });
        let Some(found) = known.next() else {
            return (None, first.named);
        };
        if known.all(|other| other.1 == found.1) {
            return found;
        }
        (None, Named::Unknown(&first.row.symbol))
    }

    fn trades(self) -> Trades {
        // Indices of imports go by their ids, and not by the order in which they were given.
        let mut order: Vec<usize> = (0..self.imports.len()).collect();
        order.sort_by_key(|at| (self.imports[*at].import, self.imports[*at].format));
        let mut places = vec![0; order.len()];
        for (place, at) in order.iter().enumerate() {
            places[*at] = place as u32;
        }
        let name = |at: &usize| ImportName {
            id: self.imports[*at].import.to_owned(),
            format: self.imports[*at].format.to_owned(),
        };
        // As long as they may be at once: growing would need the room twice.
        let all = Vec::with_capacity(self.drafts.len());
        let imports = order.iter().map(name).collect();
        let mut trades = Trades {
            imports,
            all,
            conflicts: Vec::new(),
        };
        let mut names = Names::default();
        for draft in &self.drafts {
            let mut trade = self.named_trade(draft, &mut names);
            for source in &mut trade.sources {
                source.import = places[source.import as usize];
            }
            trade.sources.sort_unstable();
            match &draft.conflict {
                None => trades.all.push(trade),
                Some(conflict) => trades.conflicts.push(Conflict {
                    id: conflict.0.clone(),
                    trade,
                    first: draft.figures,
                    second: conflict.1,
                }),
            }
        }
        trades.all.sort_unstable_by(Trade::cmp_in_time);
        number(&mut trades.all);
        trades.conflicts.sort_unstable_by(|left, right| {
            left.trade
                .cmp_in_time(&right.trade)
                .then_with(|| left.id.cmp(&right.id))
        });
        trades
    }
}

/// Counts up the equal trades without an id.
fn number(trades: &mut [Trade]) {
    let mut ordinals = vec![0; trades.len()];
    let mut counts: HashMap<_, u32> = HashMap::new();
    for (trade, ordinal) in trades.iter().zip(&mut ordinals) {
        if trade.trade_id.is_none() {
            let count = counts.entry(trade.figure_key()).or_default();
            *ordinal = *count;
            *count += 1;
        }
    }
    drop(counts);
    for (trade, ordinal) in trades.iter_mut().zip(ordinals) {
        trade.ordinal = ordinal;
    }
}

fn stated(charges: &Charges) -> usize {
    let all = [
        charges.brokerage,
        charges.stt,
        charges.stamp_duty,
        charges.other,
    ];
    all.iter().flatten().count()
}

/// Texts that many trades share.
#[derive(Default)]
struct Names<'a>(HashMap<&'a str, Arc<str>>);

impl<'a> Names<'a> {
    fn of(&mut self, text: &'a str) -> Arc<str> {
        self.0.entry(text).or_insert_with(|| text.into()).clone()
    }
}

/// The trades that rows without an id may be, by what these say. Each key that is looked for is
/// there from the start, so that the many trades with ids that nothing looks for are not kept.
struct Targets<'a> {
    by_security: HashMap<FigureKey<'a>, Vec<u32>>,
    /// By the symbols of all, of any security.
    by_symbol: HashMap<FigureKey<'a>, Vec<u32>>,
}

impl<'a> Targets<'a> {
    fn sought(merge: &Merge<'a>, drafts: &[(Draft, FigureKey<'a>)]) -> Self {
        let by_security = drafts.iter().map(|(_, key)| (*key, Vec::new())).collect();
        let by_symbol = drafts.iter().map(|(draft, _)| {
            let key = merge.symbol_key(draft.rows[0]);
            (key, Vec::new())
        });
        Self {
            by_security,
            by_symbol: by_symbol.collect(),
        }
    }

    /// A conflict is found by each of the figures that its rows say.
    fn add(&mut self, merge: &Merge<'a>, at: u32) {
        for row in &merge.drafts[at as usize].rows {
            let keys = [
                (&mut self.by_security, merge.figure_key(*row)),
                (&mut self.by_symbol, merge.symbol_key(*row)),
            ];
            for (index, key) in keys {
                if let Some(targets) = index.get_mut(&key)
                    && targets.last() != Some(&at)
                {
                    targets.push(at);
                }
            }
        }
    }

    /// The first target that may be `draft`. A target is of no import that shows the row as well:
    /// two lines of one file are two trades.
    fn find(&self, merge: &Merge<'a>, draft: &Draft, key: FigureKey<'a>) -> Option<u32> {
        let of_security = self.by_security.get(&key).into_iter().flatten();
        let may_be = |at: &&u32| merge.may_be(draft, &merge.drafts[**at as usize]);
        let found = of_security
            .copied()
            .filter(|at| may_be(&at))
            .collect::<Vec<u32>>();
        if let Some(first) = merge.first_of(&found) {
            return Some(first);
        }
        let same_symbol = self.by_symbol.get(&merge.symbol_key(draft.rows[0]))?;
        let vague = |named: Named<'_>| matches!(named, Named::Unknown(_));
        let either_is_vague = |at: &u32| {
            let target = &merge.drafts[*at as usize];
            vague(key.2) || vague(merge.security(&target.rows).1)
        };
        let found: Vec<u32> = same_symbol
            .iter()
            .copied()
            .filter(|at| may_be(&at) && either_is_vague(at))
            .collect();
        merge.first_of(&found)
    }
}

impl Merge<'_> {
    /// Exchange, time and order have to agree where both are known.
    fn may_be(&self, draft: &Draft, target: &Draft) -> bool {
        let exchange = |draft: &Draft| self.said(draft, |row| Some(row.exchange));
        let time = |draft: &Draft| self.said(draft, |row| row.time);
        let agree = |left: Option<&str>, right: Option<&str>| {
            left.zip(right).is_none_or(|(left, right)| left == right)
        };
        let order = |draft: &Draft| self.said(draft, |row| row.order_id.as_deref());
        let imports: HashSet<u32> = draft
            .rows
            .iter()
            .map(|row| self.seen[*row as usize].import)
            .collect();
        exchange(draft) == exchange(target)
            && time(draft)
                .zip(time(target))
                .is_none_or(|(left, right)| left == right)
            && agree(order(draft), order(target))
            && target
                .rows
                .iter()
                .all(|row| !imports.contains(&self.seen[*row as usize].import))
    }

    /// Of several targets that fit, the first by what it says.
    fn first_of(&self, targets: &[u32]) -> Option<u32> {
        targets.iter().copied().min_by(|left, right| {
            let first = |at: u32| {
                let rows = self.drafts[at as usize].rows.iter().copied();
                rows.min_by(|left, right| self.cmp_rows(*left, *right))
            };
            match (first(*left), first(*right)) {
                (Some(left), Some(right)) => self.cmp_rows(left, right),
                _ => Ordering::Equal,
            }
        })
    }
}

/// All rows, each with what it is of.
fn seen<'a>(imports: &'a [ImportedRows<'a>], known: Known<'_>) -> Vec<Seen<'a>> {
    let mut told: HashMap<(&AccountName, Exchange, &str), Vec<Isin>> = HashMap::new();
    for import in imports {
        for row in import
            .rows
            .iter()
            .filter(|row| row.segment == Segment::Equity)
        {
            let Some(isin) = row.isin else { continue };
            let key = (import.account, row.exchange, row.symbol.as_str());
            let isins = told.entry(key).or_default();
            let isin = known.securities.newest(isin);
            if !isins.contains(&isin) {
                isins.push(isin);
            }
        }
    }
    let mut found: HashMap<(&AccountName, Exchange, &str), Option<Isin>> = HashMap::new();
    let mut all = Vec::with_capacity(imports.iter().map(|import| import.rows.len()).sum());
    for (at, import) in imports.iter().enumerate() {
        for row in import.rows {
            let key = (import.account, row.exchange, row.symbol.as_str());
            let isin = match row.isin {
                _ if row.segment != Segment::Equity => None,
                Some(isin) => Some(isin),
                None => *found.entry(key).or_insert_with(|| {
                    let rows = told.get(&key).map(Vec::as_slice).unwrap_or_default();
                    isin_of(known, key, rows)
                }),
            };
            let named = match isin {
                _ if row.segment != Segment::Equity => Named::Contract(&row.symbol),
                Some(isin) => Named::Known(known.securities.newest(isin)),
                None => Named::Unknown(&row.symbol),
            };
            let import_at = at as u32;
            all.push(Seen {
                import: import_at,
                account: import.account,
                row,
                isin,
                named,
            });
        }
    }
    all
}

/// The ISIN of a row without one. The first source that knows any decides; of two a person's word
/// does.
fn isin_of(
    known: Known<'_>,
    (account, exchange, symbol): (&AccountName, Exchange, &str),
    rows: &[Isin],
) -> Option<Isin> {
    let one = |isins: &[Isin]| {
        let mut newest = isins.iter().map(|isin| known.securities.newest(*isin));
        let first = newest.next()?;
        Some(newest.all(|other| other == first).then_some(first))
    };
    let decided = one(rows)
        .or_else(|| one(&known.isins.held(account, exchange, symbol)))
        .or_else(|| one(&known.isins.listed(account, exchange, symbol)))
        .flatten();
    decided.or_else(|| one(&known.isins.said(account, symbol)).flatten())
}

#[cfg(test)]
#[path = "trades_tests.rs"]
mod tests;
