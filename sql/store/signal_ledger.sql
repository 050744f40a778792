SELECT l.id, l.published_on, l.symbol, l.pattern, l.direction, l.confidence, l.dates,
    l.date_hit_rate, l.base_rate, l.close_e4, l.rank, l.simulated,
    l.prior_dates, l.past_signals, l.past_hits,
    o.judged_on, o.from_close_e4, o.to_close_e4, o.hit, o.universe_symbols, o.universe_moved,
    o.hit IS NOT NULL OR EXISTS (
        SELECT 1 FROM candles c WHERE c.symbol = l.symbol AND c.date = l.published_on)
FROM signal_ledger l LEFT JOIN signal_outcomes o ON o.ledger_id = l.id
WHERE l.id > ?1 ORDER BY l.id LIMIT ?2
