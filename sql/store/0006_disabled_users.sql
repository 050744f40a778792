-- When an operator closed the account to logins; null while it is open.
ALTER TABLE users ADD COLUMN disabled_ms INTEGER;

-- One row: changes that an operator's command made beside a running service, and how many of them
-- the service has taken up.
CREATE TABLE outside_changes (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    made INTEGER NOT NULL,
    noticed INTEGER NOT NULL
) STRICT;

INSERT INTO outside_changes (id, made, noticed) VALUES (1, 0, 0);
