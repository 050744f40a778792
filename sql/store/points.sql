SELECT date, total_invested, total_current_value, total_pnl, value_without_cost, source, left_out,
    carried, suspect, brokers, holdings, discrepancies
FROM points WHERE user_id = ?1 AND date >= ?2 ORDER BY date
