INSERT INTO holdings (user_id, broker, ordinal, exchange, tradingsymbol, symbol, isin,
    settled_quantity, t1_quantity, pledged_quantity, mtf_quantity, disputed_quantity,
    average_price, cost, costed_quantity, last_price, close_price, as_of_ms, broker_pnl,
    discrepancy, unresolved, mark, marked_on, change_pct)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
    ?21, ?22, ?23, ?24)
