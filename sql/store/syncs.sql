SELECT broker, synced_ms, simulated FROM syncs WHERE user_id = ?1 ORDER BY broker
