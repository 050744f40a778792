INSERT INTO syncs (user_id, broker, synced_ms, simulated) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (user_id, broker)
DO UPDATE SET synced_ms = excluded.synced_ms, simulated = excluded.simulated
