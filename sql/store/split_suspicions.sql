SELECT date, confirmed FROM split_suspicions WHERE symbol = ?1 ORDER BY date
