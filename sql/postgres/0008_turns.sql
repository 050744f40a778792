-- Whose turn it is to change a user's portfolio, by this server's clock. The number counts up with
-- each holder and never down, so the row goes with its user alone.
CREATE TABLE turns (
    user_id bigint PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    -- Nobody, if empty.
    holder text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    until timestamptz NOT NULL
);
