-- The epoch as in change_password.sql.
UPDATE users SET token_epoch = (((token_epoch >> 32) + 1) << 32) | ?2
WHERE id = ?1
RETURNING token_epoch
