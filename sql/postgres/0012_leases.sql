-- The lease's row is written each second, and a user's with each entry of a journal: room on the page
-- for the next version of a row keeps its index untouched.
ALTER TABLE leases SET (fillfactor = 90);
ALTER TABLE users SET (fillfactor = 90);
