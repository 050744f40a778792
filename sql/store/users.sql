SELECT id, email, created_ms, disabled_ms,
    (SELECT max(synced_ms) FROM syncs WHERE user_id = users.id),
    (SELECT count(*) FROM holdings WHERE user_id = users.id)
        + (SELECT count(*) FROM positions WHERE user_id = users.id)
        + (SELECT count(*) FROM points WHERE user_id = users.id)
        + journal_entries,
    journal_bytes
FROM users WHERE id > ?1 ORDER BY id LIMIT ?2
