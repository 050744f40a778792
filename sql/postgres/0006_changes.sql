-- What every node has to know of accounts and tokens at once. The numbers are counted in the
-- transaction of the change, whose lock on the count lets changes become visible in their order.
-- Noted by triggers, so that no statement can forget it.
CREATE TABLE change_count (
    id bigint PRIMARY KEY CHECK (id = 1),
    made bigint NOT NULL,
    -- Up to here the service has taken them up. For the other engine, which one service reads.
    noticed bigint NOT NULL
);

INSERT INTO change_count (id, made, noticed) VALUES (1, 0, 0);

-- The newest of them.
CREATE TABLE changes (
    number bigint PRIMARY KEY,
    -- There is an account, and its token epoch; it was erased; a token was revoked.
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('account', 'erased', 'revoked')),
    user_id bigint,
    token_id text COLLATE "C",
    -- The token epoch of the account, or when the revoked token expires.
    value bigint
);

CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    next bigint;
BEGIN
    UPDATE change_count SET made = made + 1 WHERE id = 1 RETURNING made INTO next;
    IF TG_TABLE_NAME = 'revoked_tokens' THEN
        INSERT INTO changes (number, kind, token_id, value)
        VALUES (next, 'revoked', NEW.token_id, NEW.expires_ms);
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO changes (number, kind, user_id) VALUES (next, 'erased', OLD.id);
    ELSE
        INSERT INTO changes (number, kind, user_id, value)
        VALUES (next, 'account', NEW.id, NEW.token_epoch);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER new_users_are_told AFTER INSERT ON users
FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TRIGGER epochs_are_told AFTER UPDATE OF token_epoch ON users
FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TRIGGER erased_users_are_told AFTER DELETE ON users
FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TRIGGER revoked_tokens_are_told AFTER INSERT OR UPDATE ON revoked_tokens
FOR EACH ROW EXECUTE FUNCTION note_change();

DROP TABLE outside_changes;
