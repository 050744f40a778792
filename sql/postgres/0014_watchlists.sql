-- The watch lists of an account, in one row: they are read and replaced together.
CREATE TABLE watchlists (
    user_id bigint PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    -- The highest id that a list of the account has had. Each new list has the next one.
    last_id bigint NOT NULL,
    -- JSON: the lists in their order, each with its id, name and symbols.
    lists text COLLATE "C" NOT NULL
);
