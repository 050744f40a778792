SELECT token_id, expires_ms FROM revoked_tokens
