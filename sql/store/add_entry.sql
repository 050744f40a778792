INSERT INTO journal (user_id, traded_on, symbol, side, quantity, price, fees, strategy, notes, tags,
    created_ms, updated_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)
RETURNING id, created_ms
