UPDATE journal SET traded_on = ?3, symbol = ?4, side = ?5, quantity = ?6, price = ?7, fees = ?8,
    strategy = ?9, notes = ?10, tags = ?11, updated_ms = ?12
WHERE id = ?2 AND user_id = ?1
RETURNING id, created_ms
