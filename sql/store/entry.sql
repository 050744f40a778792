SELECT id, traded_on, symbol, side, quantity, price, fees, strategy, notes, tags, created_ms,
    updated_ms
FROM journal WHERE id = ?2 AND user_id = ?1
