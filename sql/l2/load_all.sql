SELECT key, bytes, stored_ms FROM record WHERE kind = ?1
