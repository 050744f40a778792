SELECT id, published_on, symbol, pattern, direction, confidence, dates, hit_rate, base_rate,
    close_e4, rank, simulated
FROM signal_ledger WHERE published_on = ?1
