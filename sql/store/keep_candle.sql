INSERT INTO candles (symbol, date, open_e4, high_e4, low_e4, close_e4, volume)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
