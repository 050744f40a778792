-- Decimals are text, digit for digit as the broker gave them; times are Unix milliseconds.

CREATE TABLE syncs (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    broker TEXT NOT NULL CHECK (broker IN ('a', 'b')),
    synced_ms INTEGER NOT NULL,
    simulated INTEGER NOT NULL CHECK (simulated IN (0, 1)),
    PRIMARY KEY (user_id, broker)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdings (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    broker TEXT NOT NULL CHECK (broker IN ('a', 'b')),
    -- The broker's own order.
    ordinal INTEGER NOT NULL,
    exchange TEXT NOT NULL,
    tradingsymbol TEXT NOT NULL,
    -- Under which quotes know it; null for what has none.
    symbol TEXT,
    isin TEXT,
    settled_quantity TEXT NOT NULL,
    t1_quantity TEXT NOT NULL,
    pledged_quantity TEXT NOT NULL,
    mtf_quantity TEXT NOT NULL,
    disputed_quantity TEXT NOT NULL,
    average_price TEXT,
    last_price TEXT,
    close_price TEXT,
    as_of_ms INTEGER NOT NULL,
    broker_pnl TEXT,
    discrepancy INTEGER NOT NULL CHECK (discrepancy IN (0, 1)),
    unresolved INTEGER NOT NULL CHECK (unresolved IN (0, 1)),
    corporate_action INTEGER NOT NULL CHECK (corporate_action IN (0, 1)),
    PRIMARY KEY (user_id, broker, ordinal)
) STRICT, WITHOUT ROWID;

-- For the symbols that a close needs, one step of the index each.
CREATE INDEX holdings_by_symbol ON holdings (symbol) WHERE symbol IS NOT NULL;

CREATE TABLE positions (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    broker TEXT NOT NULL CHECK (broker IN ('a', 'b')),
    ordinal INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('day', 'net')),
    exchange TEXT NOT NULL,
    tradingsymbol TEXT NOT NULL,
    product TEXT NOT NULL,
    quantity TEXT NOT NULL,
    multiplier TEXT NOT NULL,
    average_price TEXT,
    last_price TEXT,
    close_price TEXT,
    pnl TEXT,
    realised TEXT,
    unrealised TEXT,
    unresolved INTEGER NOT NULL CHECK (unresolved IN (0, 1)),
    PRIMARY KEY (user_id, broker, ordinal)
) STRICT, WITHOUT ROWID;

-- One point of the trend per IST date.
CREATE TABLE points (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    date TEXT NOT NULL,
    total_invested TEXT NOT NULL,
    total_current_value TEXT NOT NULL,
    total_pnl TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('sync', 'close')),
    left_out INTEGER NOT NULL,
    carried INTEGER NOT NULL,
    suspect INTEGER NOT NULL CHECK (suspect IN (0, 1)),
    PRIMARY KEY (user_id, date)
) STRICT, WITHOUT ROWID;
