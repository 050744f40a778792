UPDATE users SET password_hash = ?3, token_epoch = token_epoch + 1
WHERE id = ?1 AND password_hash = ?2 AND disabled_ms IS NULL
RETURNING token_epoch
