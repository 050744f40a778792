UPDATE users SET password_hash = ?3, token_epoch = token_epoch + 1
WHERE id = ?1 AND password_hash = ?2
RETURNING token_epoch
