DELETE FROM revoked_tokens WHERE expires_ms <= ?1
