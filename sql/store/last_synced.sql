SELECT max(synced_ms) FROM syncs WHERE user_id = ?1
