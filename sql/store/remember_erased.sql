INSERT INTO erased_users (id, forget_ms) VALUES (?1, ?2)
