SELECT broker, exchange, tradingsymbol, isin, settled_quantity, t1_quantity, pledged_quantity,
    mtf_quantity, disputed_quantity, average_price, last_price, close_price, as_of_ms, broker_pnl,
    discrepancy, unresolved, corporate_action
FROM holdings WHERE user_id = ?1 ORDER BY broker, ordinal
