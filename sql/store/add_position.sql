INSERT INTO positions (user_id, broker, ordinal, kind, exchange, tradingsymbol, product, quantity,
    multiplier, average_price, last_price, close_price, pnl, realised, unrealised, unresolved)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
