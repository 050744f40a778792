SELECT symbol FROM silent_symbols WHERE symbol > ?1 ORDER BY symbol LIMIT ?2
