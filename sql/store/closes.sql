SELECT symbol, price, previous_close, as_of_ms FROM closes WHERE date = ?1 ORDER BY symbol
