-- Keys by which programs use an account. Of a key's secret there is only a hash.
CREATE TABLE api_keys (
    -- The part of the key's text that is no secret.
    id text COLLATE "C" PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- The incarnation of the database in which it was made; it is good in no other.
    incarnation text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    -- Their words, separated by blanks.
    scopes text COLLATE "C" NOT NULL,
    -- SHA-256 of the secret, in hexadecimal digits.
    hash text COLLATE "C" NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint,
    -- The minute of the last use, and the network that it came from.
    used_ms bigint,
    used_from text COLLATE "C"
);

CREATE INDEX api_keys_of_user ON api_keys (user_id);

-- A change of a user's keys is a change of the account: every node reads its keys anew. Nothing is
-- told where they go with their user, whose end is told.
CREATE FUNCTION note_keys() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    account bigint;
    epoch bigint;
    next bigint;
BEGIN
    IF TG_TABLE_NAME = 'users' THEN
        account := NEW.id;
    ELSIF TG_OP = 'DELETE' THEN
        account := OLD.user_id;
    ELSE
        account := NEW.user_id;
    END IF;
    SELECT token_epoch INTO epoch FROM users WHERE id = account;
    IF FOUND THEN
        UPDATE change_count SET made = made + 1 WHERE id = 1 RETURNING made INTO next;
        INSERT INTO changes (number, kind, user_id, value)
        VALUES (next, 'account', account, epoch);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER keys_are_told AFTER INSERT OR DELETE ON api_keys
FOR EACH ROW EXECUTE FUNCTION note_keys();
-- A disabled user's keys are good again. That it was disabled is told with its new epoch.
CREATE TRIGGER enabled_users_are_told AFTER UPDATE OF disabled_ms ON users
FOR EACH ROW WHEN (OLD.disabled_ms IS NOT NULL AND NEW.disabled_ms IS NULL)
EXECUTE FUNCTION note_keys();
