-- Daily candles of the universe: prices in ten-thousandths of a rupee, volumes in shares.
CREATE TABLE candles (
    symbol TEXT NOT NULL,
    date TEXT NOT NULL,
    open_e4 INTEGER NOT NULL,
    high_e4 INTEGER NOT NULL,
    low_e4 INTEGER NOT NULL,
    close_e4 INTEGER NOT NULL,
    volume INTEGER NOT NULL,
    PRIMARY KEY (symbol, date)
) STRICT, WITHOUT ROWID;

-- Where a symbol's candles come from, and whether all of them have to be fetched again.
CREATE TABLE candle_histories (
    symbol TEXT NOT NULL PRIMARY KEY,
    source TEXT NOT NULL CHECK (source IN ('broker_a', 'public')),
    simulated INTEGER NOT NULL CHECK (simulated IN (0, 1)),
    refetch INTEGER NOT NULL CHECK (refetch IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Days that look like a split; confirmed is a real move that looks like one.
CREATE TABLE split_suspicions (
    symbol TEXT NOT NULL,
    date TEXT NOT NULL,
    confirmed INTEGER NOT NULL CHECK (confirmed IN (0, 1)),
    PRIMARY KEY (symbol, date)
) STRICT, WITHOUT ROWID;

-- A date whose signals were published, also where there were none.
CREATE TABLE signal_dates (
    date TEXT NOT NULL PRIMARY KEY,
    published_ms INTEGER NOT NULL,
    symbols INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every published signal, never altered.
CREATE TABLE signal_ledger (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    published_on TEXT NOT NULL REFERENCES signal_dates (date),
    symbol TEXT NOT NULL,
    pattern TEXT NOT NULL,
    direction TEXT NOT NULL CHECK (direction IN ('bullish', 'bearish')),
    confidence REAL NOT NULL,
    -- Of similar signals before: dates, share of hits; NULL where there was none.
    dates INTEGER NOT NULL,
    hit_rate REAL,
    base_rate REAL NOT NULL,
    close_e4 INTEGER NOT NULL,
    -- Place among the date's signals, from 1.
    rank INTEGER NOT NULL,
    -- The day's candle was not finished.
    provisional INTEGER NOT NULL DEFAULT 0 CHECK (provisional IN (0, 1)),
    simulated INTEGER NOT NULL CHECK (simulated IN (0, 1)),
    UNIQUE (published_on, symbol, pattern)
) STRICT;

-- What became of a signal, in the candles as they stood when that was known.
CREATE TABLE signal_outcomes (
    ledger_id INTEGER PRIMARY KEY REFERENCES signal_ledger (id),
    judged_on TEXT NOT NULL,
    from_close_e4 INTEGER NOT NULL,
    to_close_e4 INTEGER NOT NULL,
    hit INTEGER NOT NULL CHECK (hit IN (0, 1))
) STRICT;

CREATE TRIGGER signal_dates_stand BEFORE UPDATE ON signal_dates
BEGIN SELECT RAISE(ABORT, 'a published date is never altered'); END;
CREATE TRIGGER signal_dates_stay BEFORE DELETE ON signal_dates
BEGIN SELECT RAISE(ABORT, 'a published date is never deleted'); END;
CREATE TRIGGER signal_ledger_stands BEFORE UPDATE ON signal_ledger
BEGIN SELECT RAISE(ABORT, 'a published signal is never altered'); END;
CREATE TRIGGER signal_ledger_stays BEFORE DELETE ON signal_ledger
BEGIN SELECT RAISE(ABORT, 'a published signal is never deleted'); END;
CREATE TRIGGER signal_outcomes_stand BEFORE UPDATE ON signal_outcomes
BEGIN SELECT RAISE(ABORT, 'an outcome is never altered'); END;
CREATE TRIGGER signal_outcomes_stay BEFORE DELETE ON signal_outcomes
BEGIN SELECT RAISE(ABORT, 'an outcome is never deleted'); END;
