SELECT id, email, name, created_ms, password_hash, token_epoch, disabled_ms IS NOT NULL
FROM users WHERE id = ?1
