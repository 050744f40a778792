SELECT id, email, name, created_ms, password_hash, token_epoch FROM users WHERE email = ?1
