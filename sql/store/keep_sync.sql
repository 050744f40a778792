INSERT INTO syncs (user_id, broker, synced_ms, simulated, broker_user) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (user_id, broker)
DO UPDATE SET synced_ms = excluded.synced_ms, simulated = excluded.simulated,
    broker_user = coalesce(excluded.broker_user, syncs.broker_user)
