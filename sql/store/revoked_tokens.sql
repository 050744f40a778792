SELECT token_id, expires_ms FROM revoked_tokens WHERE expires_ms > ?1
