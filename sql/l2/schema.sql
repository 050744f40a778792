-- The second cache level: safe to delete, so it is never migrated. A change here needs a new
-- SCHEMA_VERSION in src/cache/sqlite_l2.rs; a file of another version is set aside and made anew.
CREATE TABLE record (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    bytes BLOB NOT NULL,
    stored_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT;

-- For the bound and for the removal of what is old.
CREATE INDEX record_by_age ON record (kind, stored_ms);
