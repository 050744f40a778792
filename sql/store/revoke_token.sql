INSERT INTO revoked_tokens (token_id, expires_ms) VALUES (?1, ?2)
ON CONFLICT (token_id) DO UPDATE SET expires_ms = CASE
    WHEN revoked_tokens.expires_ms < excluded.expires_ms THEN excluded.expires_ms
    ELSE revoked_tokens.expires_ms END
