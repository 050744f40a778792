-- Counts up with each write of what a user's finished responses show, so that other nodes see that
-- theirs are old.
ALTER TABLE users ADD COLUMN portfolio_version INTEGER NOT NULL DEFAULT 0;
