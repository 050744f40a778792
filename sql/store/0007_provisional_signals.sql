-- Never written: what was found in an unfinished candle has a ledger of its own.
ALTER TABLE signal_ledger DROP COLUMN provisional;

-- Every signal of an unfinished candle that was shown, once a date, never altered.
CREATE TABLE provisional_signals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The date whose candle was running; the complete list of it may never come.
    published_on TEXT NOT NULL,
    symbol TEXT NOT NULL,
    pattern TEXT NOT NULL,
    direction TEXT NOT NULL CHECK (direction IN ('bullish', 'bearish')),
    confidence REAL NOT NULL,
    -- Of similar signals before: dates, share of hits; NULL where there was none.
    dates INTEGER NOT NULL,
    hit_rate REAL,
    base_rate REAL NOT NULL,
    -- The price, in ten-thousandths of a rupee, and the time at which it was first found.
    price_e4 INTEGER NOT NULL,
    first_seen_ms INTEGER NOT NULL,
    simulated INTEGER NOT NULL CHECK (simulated IN (0, 1)),
    UNIQUE (published_on, symbol, pattern)
) STRICT;

-- What became of one, from the official close of its date, as for complete signals.
CREATE TABLE provisional_outcomes (
    provisional_id INTEGER PRIMARY KEY REFERENCES provisional_signals (id),
    judged_on TEXT NOT NULL,
    from_close_e4 INTEGER NOT NULL,
    to_close_e4 INTEGER NOT NULL,
    hit INTEGER NOT NULL CHECK (hit IN (0, 1))
) STRICT;

CREATE TRIGGER provisional_signals_stand BEFORE UPDATE ON provisional_signals
BEGIN SELECT RAISE(ABORT, 'a signal that was shown is never altered'); END;
CREATE TRIGGER provisional_signals_stay BEFORE DELETE ON provisional_signals
BEGIN SELECT RAISE(ABORT, 'a signal that was shown is never deleted'); END;
CREATE TRIGGER provisional_outcomes_stand BEFORE UPDATE ON provisional_outcomes
BEGIN SELECT RAISE(ABORT, 'an outcome is never altered'); END;
CREATE TRIGGER provisional_outcomes_stay BEFORE DELETE ON provisional_outcomes
BEGIN SELECT RAISE(ABORT, 'an outcome is never deleted'); END;
