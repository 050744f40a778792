-- What shares cost, as the broker gives it: average_price of one share, or cost of all of them, or
-- cost of costed_quantity of them alone. Rows of before have an average and no cost.
ALTER TABLE holdings ADD COLUMN cost TEXT;
ALTER TABLE holdings ADD COLUMN costed_quantity TEXT;

-- What looks like a split, with the IST date on which it was seen first.
ALTER TABLE holdings ADD COLUMN mark TEXT
    CHECK (mark IN ('inverse_ratios', 'price_leap', 'shares_arrived'));
ALTER TABLE holdings ADD COLUMN marked_on TEXT;
UPDATE holdings
SET mark = 'inverse_ratios', marked_on = date(as_of_ms / 1000, 'unixepoch', '+330 minutes')
WHERE corporate_action = 1;
ALTER TABLE holdings DROP COLUMN corporate_action;

-- Null in points of before, whose value is that of holdings with a cost alone.
ALTER TABLE points ADD COLUMN value_without_cost TEXT;
UPDATE points SET value_without_cost = '0' WHERE left_out = 0;

-- Both anew and empty: the last close is revalued once more, which writes its prices into the rows.
DROP TABLE closes;
DROP TABLE close_runs;

-- Closing prices, kept until a later date's run has finished.
CREATE TABLE closes (
    date TEXT NOT NULL,
    symbol TEXT NOT NULL,
    price TEXT NOT NULL,
    previous_close TEXT,
    as_of_ms INTEGER NOT NULL,
    PRIMARY KEY (date, symbol)
) STRICT, WITHOUT ROWID;

-- Dates whose revaluation is finished.
CREATE TABLE close_runs (
    date TEXT NOT NULL PRIMARY KEY,
    finished_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The last date at whose close a portfolio was valued with nothing left to wait for.
CREATE TABLE closed_portfolios (
    user_id INTEGER NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    date TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Symbols of which no feed had a closing price, with the last such date.
CREATE TABLE silent_symbols (
    symbol TEXT NOT NULL PRIMARY KEY,
    date TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX silent_symbols_by_date ON silent_symbols (date);
