INSERT INTO provisional_signals (published_on, symbol, pattern, direction, confidence, dates,
    date_hit_rate, base_rate, price_e4, first_seen_ms, simulated, prior_dates, past_signals,
    past_hits)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (published_on, symbol, pattern) DO NOTHING
