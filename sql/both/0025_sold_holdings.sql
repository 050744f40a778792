-- Broker A's rows of shares that were all sold today. Nothing of them is owned, so they are no
-- holdings, but the trades may not tell of the sale yet.
CREATE TABLE sold_holdings (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    broker TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    exchange TEXT NOT NULL,
    tradingsymbol TEXT NOT NULL,
    isin TEXT,
    used_quantity TEXT NOT NULL,
    PRIMARY KEY (user_id, broker, ordinal)
) STRICT, WITHOUT ROWID;
