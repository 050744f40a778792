-- The version of the form that the lists are stored in. What was stored so far has the first, and
-- so has what a program of before goes on writing beside this one.
ALTER TABLE watchlists ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
