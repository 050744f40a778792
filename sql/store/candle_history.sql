SELECT h.source, h.simulated, h.refetch, c.date, c.open_e4, c.high_e4, c.low_e4, c.close_e4, c.volume
FROM candle_histories h LEFT JOIN candles c ON c.symbol = h.symbol
WHERE h.symbol = ?1 ORDER BY c.date DESC LIMIT ?2
