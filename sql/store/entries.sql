SELECT id, traded_on, symbol, side, quantity, price, fees, strategy, notes, tags, created_ms,
    updated_ms
FROM journal WHERE user_id = ?1 ORDER BY traded_on DESC, id DESC LIMIT ?2
