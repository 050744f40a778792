DELETE FROM candles WHERE symbol = ?1 AND date < ?2
