-- Closing prices, kept until a later date's run has finished.
CREATE TABLE closes (
    date TEXT NOT NULL,
    symbol TEXT NOT NULL,
    price TEXT NOT NULL,
    PRIMARY KEY (date, symbol)
) STRICT, WITHOUT ROWID;

-- How far a date's revaluation has come: users up to done_to have their point.
CREATE TABLE close_runs (
    date TEXT NOT NULL PRIMARY KEY,
    done_to INTEGER NOT NULL,
    finished_ms INTEGER
) STRICT, WITHOUT ROWID;
