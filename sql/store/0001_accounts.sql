-- Append-only: what was released is never edited, a change is a new file.

-- AUTOINCREMENT: an id is never used twice, so a token of an erased user names nobody else.
CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    email TEXT NOT NULL UNIQUE,
    name TEXT,
    password_hash TEXT NOT NULL,
    token_epoch INTEGER NOT NULL DEFAULT 0,
    -- Kept beside the entries, so that the bound on them costs no count.
    journal_entries INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX users_with_epoch ON users (id, token_epoch) WHERE token_epoch > 0;

-- The bare ids of erased users, until their last token has expired.
CREATE TABLE erased_users (
    id INTEGER PRIMARY KEY,
    forget_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX erased_users_by_end ON erased_users (forget_ms);

CREATE TABLE revoked_tokens (
    token_id TEXT NOT NULL PRIMARY KEY,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX revoked_tokens_by_end ON revoked_tokens (expires_ms);

-- One row, written to see whether writing works.
CREATE TABLE probe (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    written INTEGER NOT NULL
) STRICT;

INSERT INTO probe (id, written) VALUES (1, 0);
