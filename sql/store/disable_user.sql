-- The epoch as in change_password.sql.
UPDATE users SET disabled_ms = ?2, token_epoch = (((token_epoch >> 32) + 1) << 32) | ?3
WHERE id = ?1 AND disabled_ms IS NULL
