UPDATE holdings SET last_price = ?4, close_price = ?5, as_of_ms = ?6, mark = ?7, marked_on = ?8,
    change_pct = ?9
WHERE user_id = ?1 AND broker = ?2 AND ordinal = ?3
