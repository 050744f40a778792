INSERT INTO silent_symbols (symbol, date) VALUES (?1, ?2)
ON CONFLICT (symbol) DO UPDATE SET date = excluded.date
