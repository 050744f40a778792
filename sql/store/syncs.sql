SELECT broker, synced_ms, simulated, broker_user FROM syncs WHERE user_id = ?1 ORDER BY broker
