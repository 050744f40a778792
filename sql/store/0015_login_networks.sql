-- Networks from which an account was used lately, as keyed hashes: logins from there have attempts
-- of their own, which strangers cannot use up. The newest few of each account.
CREATE TABLE login_networks (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- 16 hexadecimal digits, made with a key that is not in the database.
    network TEXT NOT NULL,
    seen_ms INTEGER NOT NULL,
    PRIMARY KEY (user_id, network)
) STRICT, WITHOUT ROWID;

CREATE INDEX login_networks_by_time ON login_networks (seen_ms);
CREATE INDEX login_networks_newest ON login_networks (user_id, seen_ms DESC, network);
