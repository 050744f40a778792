SELECT broker, exchange, tradingsymbol, isin, settled_quantity, t1_quantity, pledged_quantity,
    mtf_quantity, disputed_quantity, average_price, cost, costed_quantity, last_price, close_price,
    as_of_ms, broker_pnl, discrepancy, unresolved, mark, marked_on, change_pct
FROM holdings WHERE user_id = ?1 ORDER BY broker, ordinal
