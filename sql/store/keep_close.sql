INSERT INTO closes (date, symbol, price, previous_close, as_of_ms) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (date, symbol) DO UPDATE SET price = excluded.price,
    previous_close = excluded.previous_close, as_of_ms = excluded.as_of_ms
