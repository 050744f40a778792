-- After the cursor, on its own date: older entries.
SELECT id, traded_on, symbol, side, quantity, price, fees, strategy, notes, tags, created_ms,
    updated_ms
FROM journal WHERE user_id = ?1 AND traded_on = ?3 AND id < ?4
ORDER BY id DESC LIMIT ?2
