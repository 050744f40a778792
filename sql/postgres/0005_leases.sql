-- Who may act for all nodes, by this server's clock: one row for each role. The epoch counts up
-- with each holder and never down, so the row is never deleted.
CREATE TABLE leases (
    role text COLLATE "C" PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    until timestamptz NOT NULL
);

INSERT INTO leases (role, holder, epoch, until) VALUES ('feed', '', 0, '-infinity');
