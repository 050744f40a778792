INSERT INTO signal_ledger (published_on, symbol, pattern, direction, confidence, dates,
    date_hit_rate, base_rate, close_e4, rank, simulated, prior_dates, past_signals, past_hits)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
