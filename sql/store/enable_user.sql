UPDATE users SET disabled_ms = NULL WHERE id = ?1 AND disabled_ms IS NOT NULL
