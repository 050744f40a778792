SELECT p.id, p.published_on, p.symbol, p.pattern, p.direction, p.confidence, p.dates,
    p.date_hit_rate, p.base_rate, p.price_e4, p.first_seen_ms, p.simulated,
    p.prior_dates, p.past_signals, p.past_hits,
    o.judged_on, o.from_close_e4, o.to_close_e4, o.hit, o.universe_symbols, o.universe_moved,
    o.hit IS NOT NULL OR EXISTS (
        SELECT 1 FROM candles c WHERE c.symbol = p.symbol AND c.date = p.published_on),
    d.date IS NOT NULL, l.id IS NOT NULL
FROM provisional_signals p
LEFT JOIN provisional_outcomes o ON o.provisional_id = p.id
LEFT JOIN signal_dates d ON d.date = p.published_on
LEFT JOIN signal_ledger l
    ON l.published_on = p.published_on AND l.symbol = p.symbol AND l.pattern = p.pattern
WHERE p.id > ?1 ORDER BY p.id LIMIT ?2
