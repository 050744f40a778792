INSERT INTO split_suspicions (symbol, date, confirmed) VALUES (?1, ?2, ?3)
ON CONFLICT (symbol, date)
DO UPDATE SET confirmed = split_suspicions.confirmed OR excluded.confirmed
