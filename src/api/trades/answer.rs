//! Answers a read of the ledger: 304 by its version, else from the ledger, on the lane.

use std::sync::Arc;

use crate::api::call::{Call, Handled};
use crate::api::conditional::etag_of;
use crate::api::lane::on;
use crate::api::replies::KEPT;
use crate::api::state::State;
use crate::api::trades::book::Book;
use crate::api::trades::csv::CSV_TYPE;
use crate::api::trades::gathered::Gathered;
use crate::api::trades::kept_books::{BookKey, KeptBooks};
use crate::api::trades::refusals::ledger_busy;
use crate::base::{Clock, clock};
use crate::http::document::coding::content_tag;
use crate::http::document::variants::JSON;
use crate::http::{Problem, Response, Verdict};
use crate::market::{FairValues, MarketCalendar};
use crate::ops::exit::VERSION;
use crate::portfolio::Securities;
use crate::store::{AccountId, LedgerVersions, Revision, Store};
use crate::views::values;

/// Longest wait for a ledger: some others before it in the queue, and a slow disk.
const LEDGER_DEADLINE_MS: u64 = 20_000;

/// A document, and the headers that only some have.
pub(super) struct Document {
    pub(super) body: Vec<u8>,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Document {
    pub(super) fn json(view: &impl serde::Serialize) -> Self {
        Self {
            body: values::to_vec(view),
            content_type: JSON,
            headers: Vec::new(),
        }
    }

    /// A CSV that is saved under a name.
    pub(super) fn csv(body: Vec<u8>, file_name: &str) -> Self {
        let saved_as = format!("attachment; filename=\"{file_name}\"");
        Self {
            body,
            content_type: CSV_TYPE,
            headers: vec![("Content-Disposition", saved_as)],
        }
    }
}

/// The tag of a document of a user's ledger, without quotes. The same key and target make the same
/// document.
pub(super) fn tag_of(key: BookKey, target: &str) -> Revision {
    let BookKey {
        user,
        versions,
        today,
        fair_values,
    } = key;
    let LedgerVersions { ledger, portfolio } = versions;
    let user = user.0;
    let of = format!("{VERSION} {user} {ledger} {portfolio} {today} {fair_values} {target}");
    Revision(content_tag(of.as_bytes()))
}

/// Path and query of a request.
pub(super) fn target_of(call: &Call<'_>) -> String {
    let path = call.request.path();
    let parts = [path, b"?", call.query()].concat();
    String::from_utf8_lossy(&parts).into_owned()
}

/// What `work` finds in a user's ledger of this moment. Parks for the store and for the lane.
pub(super) fn on_book<T: Send + 'static>(
    state: &State,
    user: AccountId,
    work: impl FnOnce(&Book) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    of_book(state, key_of(state, user)?, work)
}

/// The ledger of this moment. Parks for the store.
fn key_of(state: &State, user: AccountId) -> Result<BookKey, Problem> {
    Ok(key_with(state, user, state.store.ledger_versions(user)?))
}

/// The ledger of this moment, of these versions.
pub(super) fn key_with(state: &State, user: AccountId, versions: LedgerVersions) -> BookKey {
    let today = clock::zoned(state.clock.now()).date();
    let fair_values = state.trades.fair_values_revision();
    BookKey {
        user,
        versions,
        today,
        fair_values,
    }
}

fn of_book<T: Send + 'static>(
    state: &State,
    key: BookKey,
    work: impl FnOnce(&Book) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let parts = BookParts::of(state);
    on(&state.trades.lane, LEDGER_DEADLINE_MS, ledger_busy, ledger_busy, move || {
        let book = parts.book(key)?;
        work(&book)
    })
}

/// Sends what `write` makes of the user's ledger. Parks for the store, which has the version, and
/// unless the client has the answer of that version, for the lane.
pub(super) fn answer(
    state: &State,
    call: &Call<'_>,
    response: &mut Response<'_>,
    write: impl FnOnce(&Book) -> Result<Document, Problem> + Send + 'static,
) -> Handled {
    let key = key_of(state, call.caller().id)?;
    let etag = etag_of(&tag_of(key, &target_of(call)));
    let verdict = call.request.preconditions().judge(Some(etag.as_bytes()))?;
    let [cache_control, vary] = KEPT;
    let mut headers = vec![("ETag", etag.as_str()), cache_control, vary];
    if verdict == Verdict::NotModified {
        response.send(verdict.status(), JSON, &headers);
        return Ok(());
    }
    let document = of_book(state, key, write)?;
    headers.extend(
        document
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str())),
    );
    response.send_owned(200, document.content_type, &headers, document.body);
    Ok(())
}

/// What a job on the lane needs to have a ledger.
struct BookParts {
    store: Arc<Store>,
    listed: Arc<Securities>,
    calendar: Arc<MarketCalendar>,
    fair_values: Arc<FairValues>,
    books: Arc<KeptBooks<Book>>,
    clock: Clock,
}

impl BookParts {
    /// The parts as of this moment.
    #[inline(never)]
    fn of(state: &State) -> Self {
        Self {
            store: Arc::clone(&state.store),
            listed: state.portfolio.securities.load_full(),
            calendar: state.calendar(),
            fair_values: state.trades.fair_values.load_full(),
            books: Arc::clone(&state.trades.books),
            clock: state.clock.clone(),
        }
    }

    /// The ledger of these versions, kept or computed. Blocks.
    fn book(&self, key: BookKey) -> Result<Arc<Book>, Problem> {
        // A reload may have come in between.
        let key = BookKey {
            fair_values: self.fair_values.revision(),
            ..key
        };
        if let Some(book) = self.books.find(key, self.clock.monotonic_ms()) {
            return Ok(book);
        }
        self.books.make_room(key.user);
        let gathered = Gathered::read(&self.store, key.user, &self.listed)?;
        let fair_values = Arc::clone(&self.fair_values);
        let book = Arc::new(Book::of(gathered, &self.calendar, fair_values, key.today)?);
        self.books
            .keep(key, &book, book.bytes(), self.clock.monotonic_ms());
        Ok(book)
    }
}
