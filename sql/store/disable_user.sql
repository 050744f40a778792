UPDATE users SET disabled_ms = ?2, token_epoch = token_epoch + 1
WHERE id = ?1 AND disabled_ms IS NULL
