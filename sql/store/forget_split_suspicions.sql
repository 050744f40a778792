DELETE FROM split_suspicions WHERE symbol = ?1
