UPDATE identity SET moved_to = ?1, moved_ms = ?2 WHERE id = 1
