SELECT date, open_e4, high_e4, low_e4, close_e4, volume
FROM candles WHERE symbol = ?1 ORDER BY date
