UPDATE journal SET traded_on = ?2, symbol = ?3, side = ?4, quantity = ?5, price = ?6, fees = ?7,
    strategy = ?8, notes = ?9, tags = ?10, updated_ms = ?11
WHERE id = ?12 AND user_id = ?1
RETURNING id, created_ms
