-- The trades ledger. It is a function of the live imports' rows and of what the person says, so
-- nothing of it is stored that could be computed. The version changes with each of them.
ALTER TABLE users ADD COLUMN ledger_version INTEGER NOT NULL DEFAULT 0;

-- Demat accounts with the person whose they are, once either was said or an import was confirmed.
CREATE TABLE ledger_accounts (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    person TEXT NOT NULL DEFAULT 'self',
    PRIMARY KEY (user_id, name)
) STRICT, WITHOUT ROWID;

-- Files and syncs. `due_ms` is when one that is not live is dropped, or forgotten.
CREATE TABLE ledger_imports (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    account TEXT NOT NULL,
    state TEXT NOT NULL,
    kind TEXT NOT NULL,
    format TEXT NOT NULL,
    sha256 TEXT,
    client_kind TEXT,
    client_id TEXT,
    period_from TEXT,
    period_to TEXT,
    row_count INTEGER NOT NULL,
    new_count INTEGER NOT NULL,
    known_count INTEGER NOT NULL,
    conflict_count INTEGER NOT NULL,
    refused_count INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    due_ms INTEGER
) STRICT;
CREATE INDEX ledger_imports_of_user ON ledger_imports (user_id, id);
CREATE INDEX ledger_imports_by_due ON ledger_imports (due_ms);

-- What each line of an import says of one execution. Amounts are text, with every digit. `entered`
-- and `how` are of a source that says when and how shares came into the account.
CREATE TABLE ledger_rows (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    import_id INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    line INTEGER NOT NULL,
    symbol TEXT NOT NULL,
    isin TEXT,
    exchange TEXT NOT NULL,
    segment TEXT NOT NULL,
    series TEXT,
    traded_on TEXT NOT NULL,
    traded_at TEXT,
    side TEXT NOT NULL,
    quantity TEXT NOT NULL,
    price TEXT NOT NULL,
    trade_id TEXT,
    order_id TEXT,
    product TEXT,
    auction BOOLEAN NOT NULL,
    expiry TEXT,
    brokerage TEXT,
    stt TEXT,
    stamp_duty TEXT,
    other_charges TEXT,
    stt_paid BOOLEAN,
    mark TEXT,
    entered TEXT,
    how TEXT,
    PRIMARY KEY (user_id, import_id, ordinal)
) STRICT, WITHOUT ROWID;

-- Lines of a broker's own report, as it states them.
CREATE TABLE ledger_report_lines (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    import_id INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    line INTEGER NOT NULL,
    section TEXT NOT NULL,
    symbol TEXT NOT NULL,
    isin TEXT,
    acquired_on TEXT,
    sold_on TEXT,
    quantity TEXT NOT NULL,
    cost TEXT,
    cost_considered TEXT,
    proceeds TEXT NOT NULL,
    gain TEXT NOT NULL,
    taxable TEXT,
    fmv TEXT,
    turnover TEXT,
    brokerage TEXT,
    stt TEXT,
    stamp_duty TEXT,
    other_charges TEXT,
    purchase_expenses TEXT,
    stt_paid BOOLEAN,
    PRIMARY KEY (user_id, import_id, ordinal)
) STRICT, WITHOUT ROWID;

-- Dividends of such a report.
CREATE TABLE ledger_income (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    import_id INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    line INTEGER NOT NULL,
    symbol TEXT NOT NULL,
    isin TEXT,
    ex_date TEXT NOT NULL,
    quantity TEXT NOT NULL,
    per_share TEXT,
    amount TEXT NOT NULL,
    PRIMARY KEY (user_id, import_id, ordinal)
) STRICT, WITHOUT ROWID;

-- What the person says that no trade says, as the document that the API takes.
CREATE TABLE ledger_corrections (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
) STRICT, WITHOUT ROWID;

-- Which of two rows with one id and other figures the person keeps.
CREATE TABLE ledger_choices (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    conflict TEXT NOT NULL,
    kept TEXT NOT NULL,
    PRIMARY KEY (user_id, conflict)
) STRICT, WITHOUT ROWID;
