INSERT INTO closes (date, symbol, price) VALUES (?1, ?2, ?3)
ON CONFLICT (date, symbol) DO UPDATE SET price = excluded.price
