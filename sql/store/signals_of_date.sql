SELECT id, published_on, symbol, pattern, direction, confidence, dates, date_hit_rate, base_rate,
    close_e4, rank, simulated, prior_dates, past_signals, past_hits
FROM signal_ledger WHERE published_on = ?1
