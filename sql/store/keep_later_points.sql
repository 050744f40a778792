UPDATE points SET total_invested = ?3, total_current_value = ?4, total_pnl = ?5,
    value_without_cost = ?6, left_out = ?7, carried = CASE WHEN date < ?8 THEN ?9 ELSE ?10 END,
    suspect = suspect OR ?11, brokers = ?12, holdings = ?13, discrepancies = ?14
WHERE user_id = ?1 AND date > ?2
