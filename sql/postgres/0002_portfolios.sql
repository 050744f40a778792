CREATE TABLE syncs (
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    broker text COLLATE "C" NOT NULL CHECK (broker IN ('a', 'b')),
    synced_ms bigint NOT NULL,
    simulated boolean NOT NULL,
    PRIMARY KEY (user_id, broker)
);

CREATE TABLE holdings (
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    broker text COLLATE "C" NOT NULL CHECK (broker IN ('a', 'b')),
    -- The broker's own order.
    ordinal bigint NOT NULL,
    exchange text COLLATE "C" NOT NULL,
    tradingsymbol text COLLATE "C" NOT NULL,
    -- Under which quotes know it; null for what has none.
    symbol text COLLATE "C",
    isin text COLLATE "C",
    settled_quantity text COLLATE "C" NOT NULL,
    t1_quantity text COLLATE "C" NOT NULL,
    pledged_quantity text COLLATE "C" NOT NULL,
    mtf_quantity text COLLATE "C" NOT NULL,
    disputed_quantity text COLLATE "C" NOT NULL,
    -- What shares cost, as the broker gives it: average_price of one share, or cost of all of them,
    -- or cost of costed_quantity of them alone.
    average_price text COLLATE "C",
    cost text COLLATE "C",
    costed_quantity text COLLATE "C",
    last_price text COLLATE "C",
    close_price text COLLATE "C",
    as_of_ms bigint NOT NULL,
    broker_pnl text COLLATE "C",
    discrepancy boolean NOT NULL,
    unresolved boolean NOT NULL,
    -- What looks like a split, with the IST date on which it was seen first.
    mark text COLLATE "C" CHECK (mark IN ('inverse_ratios', 'price_leap', 'shares_arrived')),
    marked_on text COLLATE "C",
    PRIMARY KEY (user_id, broker, ordinal)
);

-- For the symbols that a close needs, one step of the index each.
CREATE INDEX holdings_by_symbol ON holdings (symbol) WHERE symbol IS NOT NULL;

CREATE TABLE positions (
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    broker text COLLATE "C" NOT NULL CHECK (broker IN ('a', 'b')),
    ordinal bigint NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('day', 'net')),
    exchange text COLLATE "C" NOT NULL,
    tradingsymbol text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    quantity text COLLATE "C" NOT NULL,
    multiplier text COLLATE "C" NOT NULL,
    average_price text COLLATE "C",
    last_price text COLLATE "C",
    close_price text COLLATE "C",
    pnl text COLLATE "C",
    realised text COLLATE "C",
    unrealised text COLLATE "C",
    unresolved boolean NOT NULL,
    PRIMARY KEY (user_id, broker, ordinal)
);

-- One point of the trend per IST date.
CREATE TABLE points (
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    date text COLLATE "C" NOT NULL,
    total_invested text COLLATE "C" NOT NULL,
    total_current_value text COLLATE "C" NOT NULL,
    total_pnl text COLLATE "C" NOT NULL,
    -- Null in points of before it was kept, whose value is that of holdings with a cost alone.
    value_without_cost text COLLATE "C",
    source text COLLATE "C" NOT NULL CHECK (source IN ('sync', 'close')),
    left_out bigint NOT NULL,
    carried bigint NOT NULL,
    suspect boolean NOT NULL,
    PRIMARY KEY (user_id, date)
);

-- Closing prices, kept until a later date's run has finished.
CREATE TABLE closes (
    date text COLLATE "C" NOT NULL,
    symbol text COLLATE "C" NOT NULL,
    price text COLLATE "C" NOT NULL,
    previous_close text COLLATE "C",
    as_of_ms bigint NOT NULL,
    PRIMARY KEY (date, symbol)
);

-- Dates whose revaluation is finished.
CREATE TABLE close_runs (
    date text COLLATE "C" PRIMARY KEY,
    finished_ms bigint NOT NULL
);

-- The last date at whose close a portfolio was valued with nothing left to wait for.
CREATE TABLE closed_portfolios (
    user_id bigint PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    date text COLLATE "C" NOT NULL
);

-- Symbols of which no feed had a closing price, with the last such date.
CREATE TABLE silent_symbols (
    symbol text COLLATE "C" PRIMARY KEY,
    date text COLLATE "C" NOT NULL
);

CREATE INDEX silent_symbols_by_date ON silent_symbols (date);
