-- Without an id of before, one of 128 random bits.
UPDATE identity SET database_id = coalesce(?1, lower(hex(randomblob(16)))), starts = starts + 1
WHERE id = 1
RETURNING database_id, starts
