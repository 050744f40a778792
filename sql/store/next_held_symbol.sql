SELECT symbol FROM holdings WHERE symbol IS NOT NULL AND symbol > ?1 ORDER BY symbol LIMIT 1
