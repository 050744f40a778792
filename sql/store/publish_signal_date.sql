INSERT INTO signal_dates (date, published_ms, symbols) VALUES (?1, ?2, ?3)
ON CONFLICT (date) DO NOTHING
