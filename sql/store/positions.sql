SELECT broker, kind, exchange, tradingsymbol, product, quantity, multiplier, average_price,
    last_price, close_price, pnl, realised, unrealised, unresolved
FROM positions WHERE user_id = ?1 ORDER BY broker, ordinal
