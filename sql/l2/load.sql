SELECT bytes, stored_ms FROM record WHERE kind = ?1 AND key = ?2
