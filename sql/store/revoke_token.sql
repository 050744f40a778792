INSERT INTO revoked_tokens (token_id, expires_ms) VALUES (?1, ?2)
ON CONFLICT (token_id) DO UPDATE SET expires_ms = max(expires_ms, excluded.expires_ms)
