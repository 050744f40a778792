DELETE FROM record WHERE kind = ?1 AND stored_ms < ?2
