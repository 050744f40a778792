-- One row. Tokens are good for the database of one id alone: it is made when the file is first
-- opened by a service, and copies have none. `starts` counts the openings, so that a file that was
-- put back is told by the file beside it, which counts them too.
CREATE TABLE identity (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    database_id TEXT,
    starts INTEGER NOT NULL,
    -- How often something was erased for good, and up to which of these times the file has been
    -- written anew, which leaves no trace of it.
    erasures INTEGER NOT NULL,
    erasures_cleaned INTEGER NOT NULL
) STRICT;

INSERT INTO identity (id, database_id, starts, erasures, erasures_cleaned)
VALUES (1, NULL, 0, 0, 0);

-- Which users there are is known now, so who is gone needs no list.
DROP TABLE erased_users;
