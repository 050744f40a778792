INSERT INTO points (user_id, date, total_invested, total_current_value, total_pnl,
    value_without_cost, source, left_out, carried, suspect, brokers, holdings, discrepancies)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (user_id, date)
DO UPDATE SET total_invested = excluded.total_invested,
    total_current_value = excluded.total_current_value, total_pnl = excluded.total_pnl,
    value_without_cost = excluded.value_without_cost, source = excluded.source,
    left_out = excluded.left_out, carried = excluded.carried, suspect = excluded.suspect,
    brokers = excluded.brokers, holdings = excluded.holdings,
    discrepancies = excluded.discrepancies
