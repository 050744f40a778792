-- Append-only: what was released is never edited, a change is a new file. Statements are shared
-- with the other engine, in sql/store.
--
-- All text compares byte by byte, whatever the locale of the database: pages depend on it.
-- Decimals are text, digit for digit as they were given; times are Unix milliseconds.

-- One row: which migrations the database has, and the least of them that a program must know to
-- work with it.
CREATE TABLE schema (
    id bigint PRIMARY KEY CHECK (id = 1),
    version bigint NOT NULL,
    least_program bigint NOT NULL
);

-- One row. Tokens are good for the database of one id alone.
CREATE TABLE identity (
    id bigint PRIMARY KEY CHECK (id = 1),
    database_id text COLLATE "C",
    starts bigint NOT NULL
);

INSERT INTO identity (id, database_id, starts)
VALUES (1, replace(gen_random_uuid()::text, '-', ''), 0);

CREATE TABLE users (
    id bigint PRIMARY KEY,
    email text COLLATE "C" NOT NULL UNIQUE,
    name text COLLATE "C",
    password_hash text COLLATE "C" NOT NULL,
    token_epoch bigint NOT NULL DEFAULT 0,
    -- Kept beside the entries, so that the bounds on them cost no count.
    journal_entries bigint NOT NULL DEFAULT 0,
    journal_bytes bigint NOT NULL DEFAULT 0,
    created_ms bigint NOT NULL,
    -- When an operator closed the account to logins; null while it is open.
    disabled_ms bigint
);

CREATE INDEX users_with_epoch ON users (id, token_epoch) WHERE token_epoch > 0;

-- The highest id ever given to a user; none is given twice. Not a sequence: a sequence counts
-- before the commit, so that a reader could take a user who is about to come for one who is gone.
-- The lock on this row lets users become visible in the order of their ids.
CREATE TABLE last_user (
    id bigint PRIMARY KEY CHECK (id = 1),
    user_id bigint NOT NULL
);

INSERT INTO last_user (id, user_id) VALUES (1, 0);

CREATE FUNCTION number_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE last_user SET user_id = greatest(user_id + 1, NEW.id) WHERE id = 1
    RETURNING coalesce(NEW.id, user_id) INTO NEW.id;
    RETURN NEW;
END $$;

CREATE TRIGGER users_are_numbered BEFORE INSERT ON users
FOR EACH ROW EXECUTE FUNCTION number_user();

CREATE TABLE revoked_tokens (
    token_id text COLLATE "C" PRIMARY KEY,
    expires_ms bigint NOT NULL
);

CREATE INDEX revoked_tokens_by_end ON revoked_tokens (expires_ms);

-- One row: changes that an operator's command made beside a running service, and how many of them
-- the service has taken up.
CREATE TABLE outside_changes (
    id bigint PRIMARY KEY CHECK (id = 1),
    made bigint NOT NULL,
    noticed bigint NOT NULL
);

INSERT INTO outside_changes (id, made, noticed) VALUES (1, 0, 0);

-- One row, written to see whether writing works.
CREATE TABLE probe (
    id bigint PRIMARY KEY CHECK (id = 1),
    written bigint NOT NULL
);

INSERT INTO probe (id, written) VALUES (1, 0);
