-- The epoch counts up, for its order, and has 32 random bits below, so that no token of another
-- past of this database has the same.
UPDATE users SET password_hash = ?3, token_epoch = (((token_epoch >> 32) + 1) << 32) | ?4
WHERE id = ?1 AND password_hash = ?2 AND disabled_ms IS NULL
RETURNING token_epoch
