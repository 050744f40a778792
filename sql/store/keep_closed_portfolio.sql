INSERT INTO closed_portfolios (user_id, date) VALUES (?1, ?2)
ON CONFLICT (user_id) DO UPDATE SET date = excluded.date
