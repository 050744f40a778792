-- Keys by which programs use an account. Of a key's secret there is only a hash.
CREATE TABLE api_keys (
    -- The part of the key's text that is no secret.
    id TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- The incarnation of the database in which it was made; it is good in no other.
    incarnation TEXT NOT NULL,
    name TEXT NOT NULL,
    -- Their words, separated by blanks.
    scopes TEXT NOT NULL,
    -- SHA-256 of the secret, in hexadecimal digits.
    hash TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    -- The minute of the last use, and the network that it came from.
    used_ms INTEGER,
    used_from TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX api_keys_of_user ON api_keys (user_id);

-- A change of a user's keys is a change of the account: every node reads its keys anew.
CREATE TRIGGER new_keys_are_told AFTER INSERT ON api_keys BEGIN
    UPDATE change_count SET made = made + 1 WHERE id = 1;
    INSERT INTO changes (number, kind, user_id, value)
    SELECT change_count.made, 'account', users.id, users.token_epoch
    FROM change_count JOIN users ON users.id = NEW.user_id WHERE change_count.id = 1;
END;

-- Not where they go with their user, whose end is told.
CREATE TRIGGER ended_keys_are_told AFTER DELETE ON api_keys
WHEN EXISTS (SELECT 1 FROM users WHERE id = OLD.user_id) BEGIN
    UPDATE change_count SET made = made + 1 WHERE id = 1;
    INSERT INTO changes (number, kind, user_id, value)
    SELECT change_count.made, 'account', users.id, users.token_epoch
    FROM change_count JOIN users ON users.id = OLD.user_id WHERE change_count.id = 1;
END;

-- A disabled user's keys are good again. That it was disabled is told with its new epoch.
CREATE TRIGGER enabled_users_are_told AFTER UPDATE OF disabled_ms ON users
WHEN OLD.disabled_ms IS NOT NULL AND NEW.disabled_ms IS NULL BEGIN
    UPDATE change_count SET made = made + 1 WHERE id = 1;
    INSERT INTO changes (number, kind, user_id, value)
    SELECT made, 'account', NEW.id, NEW.token_epoch FROM change_count WHERE id = 1;
END;
