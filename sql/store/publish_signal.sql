INSERT INTO signal_ledger (published_on, symbol, pattern, direction, confidence, dates, hit_rate,
    base_rate, close_e4, rank, simulated)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
