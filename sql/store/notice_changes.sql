UPDATE change_count SET noticed = ?1 WHERE id = 1 AND noticed < ?1
