INSERT INTO provisional_signals (published_on, symbol, pattern, direction, confidence, dates,
    hit_rate, base_rate, price_e4, first_seen_ms, simulated)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (published_on, symbol, pattern) DO NOTHING
