CREATE TABLE journal (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    traded_on TEXT NOT NULL,
    symbol TEXT NOT NULL,
    side TEXT NOT NULL CHECK (side IN ('buy', 'sell')),
    quantity TEXT NOT NULL,
    price TEXT NOT NULL,
    fees TEXT,
    strategy TEXT,
    notes TEXT,
    -- A JSON array of text.
    tags TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT;

-- A page, newest trading date first, then newest entry.
CREATE INDEX journal_by_day ON journal (user_id, traded_on DESC, id DESC);
