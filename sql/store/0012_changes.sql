-- What every node has to know of accounts and tokens at once, as on the other engine. Here it is
-- one service, which takes up what operators' commands change beside it.
CREATE TABLE change_count (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    made INTEGER NOT NULL,
    -- Up to here the service has taken them up.
    noticed INTEGER NOT NULL
) STRICT;

INSERT INTO change_count (id, made, noticed) VALUES (1, 0, 0);

-- The newest of them.
CREATE TABLE changes (
    number INTEGER PRIMARY KEY,
    -- There is an account, and its token epoch; it was erased; a token was revoked.
    kind TEXT NOT NULL CHECK (kind IN ('account', 'erased', 'revoked')),
    user_id INTEGER,
    token_id TEXT,
    -- The token epoch of the account, or when the revoked token expires.
    value INTEGER
) STRICT;

CREATE TRIGGER new_users_are_told AFTER INSERT ON users BEGIN
    UPDATE change_count SET made = made + 1 WHERE id = 1;
    INSERT INTO changes (number, kind, user_id, value)
    SELECT made, 'account', NEW.id, NEW.token_epoch FROM change_count WHERE id = 1;
END;

CREATE TRIGGER epochs_are_told AFTER UPDATE OF token_epoch ON users BEGIN
    UPDATE change_count SET made = made + 1 WHERE id = 1;
    INSERT INTO changes (number, kind, user_id, value)
    SELECT made, 'account', NEW.id, NEW.token_epoch FROM change_count WHERE id = 1;
END;

CREATE TRIGGER erased_users_are_told AFTER DELETE ON users BEGIN
    UPDATE change_count SET made = made + 1 WHERE id = 1;
    INSERT INTO changes (number, kind, user_id)
    SELECT made, 'erased', OLD.id FROM change_count WHERE id = 1;
END;

CREATE TRIGGER new_revocations_are_told AFTER INSERT ON revoked_tokens BEGIN
    UPDATE change_count SET made = made + 1 WHERE id = 1;
    INSERT INTO changes (number, kind, token_id, value)
    SELECT made, 'revoked', NEW.token_id, NEW.expires_ms FROM change_count WHERE id = 1;
END;

CREATE TRIGGER later_revocations_are_told AFTER UPDATE ON revoked_tokens BEGIN
    UPDATE change_count SET made = made + 1 WHERE id = 1;
    INSERT INTO changes (number, kind, token_id, value)
    SELECT made, 'revoked', NEW.token_id, NEW.expires_ms FROM change_count WHERE id = 1;
END;

DROP TABLE outside_changes;
