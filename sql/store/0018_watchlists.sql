-- The watch lists of an account, in one row: they are read and replaced together.
CREATE TABLE watchlists (
    user_id INTEGER NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    -- The highest id that a list of the account has had. Each new list has the next one.
    last_id INTEGER NOT NULL,
    -- JSON: the lists in their order, each with its id, name and symbols.
    lists TEXT NOT NULL
) STRICT;
