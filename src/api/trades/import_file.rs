//! `POST /api/trades/imports`: a broker's file becomes a preview.
//!
//! The head is judged on the edge before the file comes. The file is read, compared with what is
//! stored, and written as an import that does not count, all on the lane `ledger`.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use jiff::civil::Date;
use sha2::{Digest, Sha256};

use crate::api::call::{Call, Handled, Taking};
use crate::api::lane::on;
use crate::api::query::{invalid, parameter};
use crate::api::replies::NO_STORE;
use crate::api::state::State;
use crate::api::trades::book::Book;
use crate::api::trades::corrections::CorrectionView;
use crate::api::trades::gathered::Gathered;
use crate::api::trades::imports::expect_state;
use crate::api::trades::kept_books::KeptBooks;
use crate::api::trades::refusals::{
    account_differs, full, media_type_not_supported, not_taken, too_many_imports, uploads_busy,
};
use crate::api::trades::synced::{client_of, is_of_others};
use crate::auth::throttle::{Key, SharedAttempt};
use crate::base::hex::hex;
use crate::base::{Clock, clock};
use crate::http::document::variants::JSON;
use crate::http::{Problem, Response, Upload};
use crate::ledger::file::{Cause, ClientId, FileError, FileKind, ReadFile, read_file};
use crate::ledger::row::AccountName;
use crate::ledger::trades::{ImportedRows, Preview, preview};
use crate::portfolio::Securities;
use crate::rt::arenas;
use crate::store::{AccountId, ImportBatch, ImportCounts, NewImport, ROWS_PER_WRITE, Store};
use crate::views::trades::imports::{
    ConflictLine, FiguresView, ImportPeriod, PreviewView, ProposalLine, RefusedLine,
};
use crate::views::values;
use crate::views::values::{Day, Instant};

/// How a file is taken.
pub(crate) const IMPORT: Taking = Taking { admit, take };

/// Longest wait for the lane.
const QUEUE_WAIT_MS: u64 = 20_000;
/// Longest time in which a file is read.
const READING_MS: u64 = 20_000;
/// Longest wait for a preview: the lane, the reading, and as long again for the store.
const IMPORT_DEADLINE_MS: u64 = 60_000;
/// Rows of a file whose memory is worth giving back to the system.
const LARGE_ROWS: usize = 10_000;
/// Entries of each list of a preview.
const LISTED_MAX: usize = 200;
/// Bytes of a file that are hashed at once.
const HASHED_BYTES: usize = 16 * 1024;

/// What a file may be sent as. What it is, is told by its content alone.
const MEDIA_TYPES: [&[u8]; 9] = [
    b"text/csv",
    b"text/plain",
    b"text/tab-separated-values",
    b"application/csv",
    b"application/vnd.ms-excel",
    b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    b"application/zip",
    b"application/x-zip-compressed",
    b"application/octet-stream",
];

/// What the query says.
struct Wanted {
    account: AccountName,
    /// Another client id than that of the account is taken.
    force: bool,
}

fn wanted(call: &Call<'_>) -> Result<Wanted, Problem> {
    const NAME: &str = "A name of 1 to 40 of a-z, 0-9, _ and -. The synced ones are a and b.";
    let account = parameter(call.query(), "account", NAME, AccountName::parse)?;
    let account = account.ok_or_else(|| invalid("account", "This parameter is required."))?;
    let force = parameter(call.query(), "force", "Either true or false.", |text| text.parse().ok());
    Ok(Wanted {
        account,
        force: force?.unwrap_or(false),
    })
}

/// Judges the head, and counts the attempt.
fn admit(state: &State, call: &Call<'_>) -> Result<(), Problem> {
    let content_type = call.request.header("content-type").unwrap_or_default();
    let media_type = content_type
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default();
    let media_type = media_type.trim_ascii();
    let is_coded = call.request.header("content-encoding").is_some();
    if is_coded
        || !MEDIA_TYPES
            .iter()
            .any(|known| media_type.eq_ignore_ascii_case(known))
    {
        return Err(media_type_not_supported());
    }
    wanted(call)?;
    let keys = [Key::User(call.caller().id.0)];
    state.trades.attempts.admit(&keys).map_err(too_many_imports)
}

/// A request without a body.
pub(crate) fn import_nothing(state: &State, call: &Call<'_>, _: &mut Response<'_>) -> Handled {
    wanted(call)?;
    expect_state(state, call)?;
    Err(not_taken(FileError::not_understood(Cause::Empty)))
}

/// Parks for the lane.
fn take(state: &State, call: &Call<'_>, upload: Upload, response: &mut Response<'_>) -> Handled {
    let Wanted { account, force } = wanted(call)?;
    expect_state(state, call)?;
    let user = call.caller().id;
    let now = state.clock.now();
    let import = Import {
        store: Arc::clone(&state.store),
        listed: listed(state),
        books: Arc::clone(&state.trades.books),
        clock: state.clock.clone(),
        attempt: state.trades.attempts.shared_attempt(&[Key::User(user.0)]),
        queued_mono_ms: state.clock.monotonic_ms(),
        user,
        account,
        force,
        today: clock::zoned(now).date(),
        now_ms: now.as_millisecond(),
        rows_max: state.trades.rows_max(),
    };
    let lane = &state.trades.lane;
    let made = on(lane, IMPORT_DEADLINE_MS, uploads_busy, uploads_busy, || import.read(upload))?;
    response.send_owned(201, JSON, &[NO_STORE], made);
    Ok(())
}

#[inline(never)]
fn listed(state: &State) -> Arc<Securities> {
    state.portfolio.securities.load_full()
}

/// One file on the lane.
struct Import {
    store: Arc<Store>,
    listed: Arc<Securities>,
    books: Arc<KeptBooks<Book>>,
    clock: Clock,
    /// To be counted together with the other nodes.
    attempt: Option<SharedAttempt>,
    queued_mono_ms: u64,
    user: AccountId,
    account: AccountName,
    force: bool,
    today: Date,
    now_ms: i64,
    rows_max: usize,
}

/// What is told of a file's rows.
struct Judged {
    preview: Preview,
    /// Whether its rows are stored: not if an import of the same file is live.
    is_stored: bool,
    counts: ImportCounts,
}

impl Import {
    /// Reads the file, stores what it says, and writes the preview.
    fn read(mut self, mut upload: Upload) -> Result<Vec<u8>, Problem> {
        let began_mono_ms = self.clock.monotonic_ms();
        if began_mono_ms > self.queued_mono_ms + QUEUE_WAIT_MS {
            return Err(uploads_busy());
        }
        if let Some(attempt) = self.attempt.take() {
            attempt.count().map_err(too_many_imports)?;
        }
        let sha256 = hashed(&mut upload).map_err(|error| Problem::internal().because(error))?;
        self.books.make_room(self.user);
        let until_mono_ms = began_mono_ms + READING_MS;
        let out_of_time = || self.clock.monotonic_ms() > until_mono_ms;
        let file = read_file(&mut upload, &self.account, self.today, &out_of_time);
        let file = file.map_err(not_taken)?;
        // Its memory is free for the next one.
        drop(upload);
        let gathered = Gathered::read(&self.store, self.user, &self.listed)?;
        self.expect_same_client(&gathered, file.client_id.as_ref())?;
        let judged = self.judged(&gathered, &file, &sha256);
        let person = gathered.person_of(&self.account).to_owned();
        drop(gathered);
        let period = period(&file);
        let new = NewImport {
            account: self.account.clone(),
            kind: file.kind,
            format: file.format,
            sha256: Some(sha256),
            client: file.client_id.clone(),
            period,
            row_count: if judged.is_stored {
                stored_rows(&file)
            } else {
                0
            },
            counts: judged.counts,
        };
        let begun = self
            .store
            .begin_import(self.user, new, self.rows_max, self.now_ms);
        let id = begun.map_err(full)?;
        let told = Told::of(&self.account, &file, &judged);
        let is_large = stored_rows(&file) >= LARGE_ROWS;
        if judged.is_stored {
            self.write_rows(id, file)?;
        }
        if is_large {
            arenas::give_back();
        }
        let shown = self.store.preview_import(self.user, id, self.now_ms)?;
        let (expires_ms, dropped) = shown.ok_or_else(uploads_busy)?;
        for import in &dropped {
            self.store.empty_import(import, self.now_ms)?;
        }
        Ok(told.written(id, &person, period, expires_ms))
    }

    /// Refuses a file of another client of the broker.
    fn expect_same_client(
        &self,
        gathered: &Gathered,
        client: Option<&ClientId>,
    ) -> Result<(), Problem> {
        let Some(client) = client.filter(|_| !self.force) else {
            return Ok(());
        };
        let of_files = gathered
            .imports
            .iter()
            .filter(|import| import.account == self.account);
        let of_files = of_files.filter_map(|import| import.client.clone());
        let syncs = gathered.portfolio.syncs.iter();
        let of_syncs = syncs.filter(|sync| sync.account.as_str() == self.account.as_str());
        let of_syncs = of_syncs.filter_map(client_of);
        match is_of_others(client, of_files.chain(of_syncs)) {
            true => Err(account_differs()),
            false => Ok(()),
        }
    }

    fn judged(&self, gathered: &Gathered, file: &ReadFile, sha256: &str) -> Judged {
        let is_same = gathered.imports.iter().any(|import| {
            import.account == self.account && import.sha256.as_deref() == Some(sha256)
        });
        let preview = match file.kind {
            _ if is_same => Preview {
                known: file.rows.iter().map(|row| row.line).collect(),
                ..Preview::default()
            },
            FileKind::Trades => {
                let added = ImportedRows {
                    import: "",
                    account: &self.account,
                    format: file.format.as_str(),
                    rows: &file.rows,
                };
                preview(&gathered.imported(), added, gathered.known())
            }
            FileKind::TaxReport => Preview::default(),
        };
        // A line of a report states what it states, however often.
        let stated = file.report.len() + file.income.len();
        let counts = ImportCounts {
            new_count: preview.new.len() + if is_same { 0 } else { stated },
            known_count: preview.known.len() + if is_same { stated } else { 0 },
            conflict_count: preview.conflicts.len(),
            refused_count: file.refused.len(),
        };
        Judged {
            preview,
            is_stored: !is_same,
            counts,
        }
    }

    /// Writes all rows, a batch at a time.
    fn write_rows(&self, id: i64, file: ReadFile) -> Result<(), Problem> {
        self.write_each(id, file.rows, ImportBatch::Trades)?;
        self.write_each(id, file.report, ImportBatch::Report)?;
        self.write_each(id, file.income, ImportBatch::Income)
    }

    fn write_each<T>(
        &self,
        id: i64,
        rows: Vec<T>,
        batch: impl Fn(Vec<T>) -> ImportBatch,
    ) -> Result<(), Problem> {
        let mut rows = rows.into_iter();
        let mut first = 0;
        loop {
            let part: Vec<T> = rows.by_ref().take(ROWS_PER_WRITE).collect();
            let count = part.len();
            if count == 0 {
                return Ok(());
            }
            if !self
                .store
                .add_import_rows(self.user, id, first, batch(part))?
            {
                return Err(uploads_busy());
            }
            first += count;
        }
    }
}

/// The SHA-256 of a file, which is at its beginning again afterwards.
fn hashed(upload: &mut Upload) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut part = vec![0; HASHED_BYTES];
    loop {
        let count = upload.read(&mut part)?;
        if count == 0 {
            break;
        }
        hash.update(&part[..count]);
    }
    upload.seek(SeekFrom::Start(0))?;
    Ok(hex(&hash.finalize()))
}

/// Rows of the longest of the lists that are stored, by whose places they are removed.
fn stored_rows(file: &ReadFile) -> usize {
    file.rows.len() + file.report.len() + file.income.len()
}

fn period(file: &ReadFile) -> Option<(Date, Date)> {
    let of_rows = file.rows.iter().map(|row| row.date);
    let of_report = file.report.iter().filter_map(|line| line.sold);
    let of_income = file.income.iter().map(|row| row.ex_date);
    let mut dates = of_rows.chain(of_report).chain(of_income);
    let first = dates.next()?;
    Some(dates.fold((first, first), |(from, to), date| (from.min(date), to.max(date))))
}

/// What the preview tells of a file.
struct Told {
    kind: FileKind,
    format: &'static str,
    account: AccountName,
    rows: usize,
    counts: ImportCounts,
    conflicts: Vec<ConflictLine>,
    refused: Vec<RefusedLine>,
    proposals: Vec<ProposalLine>,
    proposal_count: usize,
    notes: Vec<String>,
}

impl Told {
    fn of(account: &AccountName, file: &ReadFile, judged: &Judged) -> Self {
        let conflicts = judged.preview.conflicts.iter().take(LISTED_MAX);
        let conflicts = conflicts.map(|conflict| ConflictLine {
            line: conflict.line,
            trade: conflict.trade.clone(),
            stated: FiguresView::of(conflict.stated),
            stored: FiguresView::of(conflict.stored),
        });
        let refused = file.refused.iter().take(LISTED_MAX);
        let refused = refused.map(|refused| RefusedLine {
            line: refused.line,
            reason: refused.reason,
        });
        let proposals = file.proposals.iter().take(LISTED_MAX);
        let proposals = proposals.map(|proposal| ProposalLine {
            line: proposal.line,
            correction: CorrectionView::of(&proposal.correction),
        });
        Self {
            kind: file.kind,
            format: file.format.as_str(),
            account: account.clone(),
            rows: file.row_count,
            counts: judged.counts,
            conflicts: conflicts.collect(),
            refused: refused.collect(),
            proposals: proposals.collect(),
            proposal_count: file.proposals.len(),
            notes: file.notes.clone(),
        }
    }

    fn written(
        self,
        id: i64,
        person: &str,
        period: Option<(Date, Date)>,
        expires_ms: i64,
    ) -> Vec<u8> {
        values::to_vec(&PreviewView {
            id,
            kind: self.kind.as_str(),
            format: self.format,
            account: self.account.as_str(),
            person,
            period: period.map(|(from, to)| ImportPeriod {
                from: Day(from),
                to: Day(to),
            }),
            rows: self.rows,
            new: self.counts.new_count,
            known: self.counts.known_count,
            conflicts: &self.conflicts,
            conflict_count: self.counts.conflict_count,
            refused: &self.refused,
            refused_count: self.counts.refused_count,
            proposals: &self.proposals,
            proposal_count: self.proposal_count,
            notes: &self.notes,
            expires_at: Instant::of_ms(expires_ms),
        })
    }
}
