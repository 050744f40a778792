SELECT h.symbol, h.source, h.simulated, h.refetch,
    (SELECT max(c.date) FROM candles c WHERE c.symbol = h.symbol)
FROM candle_histories h WHERE h.symbol > ?1 ORDER BY h.symbol LIMIT ?2
