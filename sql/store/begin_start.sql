-- Without an id of before, a new one of 128 random bits.
UPDATE identity SET
    database_id = coalesce(?1, lower(hex(randomblob(16)))),
    cluster_id = CASE WHEN ?1 IS NULL OR cluster_id IS NULL THEN lower(hex(randomblob(16)))
        ELSE cluster_id END,
    starts = starts + 1
WHERE id = 1
RETURNING database_id, starts, moved_to, moved_ms
