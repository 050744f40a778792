-- Keeps the ?2 records of a kind that were stored last.
DELETE FROM record WHERE rowid IN (
    SELECT rowid FROM record WHERE kind = ?1 ORDER BY stored_ms DESC LIMIT -1 OFFSET ?2
)
