INSERT INTO record (kind, key, bytes, stored_ms) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (kind, key) DO UPDATE SET bytes = excluded.bytes, stored_ms = excluded.stored_ms
