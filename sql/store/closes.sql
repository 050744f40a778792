SELECT symbol, price FROM closes WHERE date = ?1 ORDER BY symbol
