-- The id that tokens are bound to (`database_id`) is the database's incarnation: it is made anew
-- where the database is seen to be another than it was, or to have gone back. The id of the cluster
-- stays while the same database goes on, and tells those that share a cache server apart.
ALTER TABLE identity ADD COLUMN cluster_id TEXT;
-- Of databases that several nodes have.
ALTER TABLE identity ADD COLUMN secret_check TEXT;
-- Where and when the file was copied to a server, which has gone on from it.
ALTER TABLE identity ADD COLUMN moved_to TEXT;
ALTER TABLE identity ADD COLUMN moved_ms INTEGER;

-- A random mark of each change. A number alone does not prove that the changes before it are those
-- that were read: after a database has gone back, other changes get the same numbers.
ALTER TABLE changes ADD COLUMN mark INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER changes_are_marked AFTER INSERT ON changes BEGIN
    UPDATE changes SET mark = random() & 0xFFFFFFFFFFFF WHERE number = NEW.number;
END;
