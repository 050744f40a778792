SELECT id FROM users
WHERE id > ?1 AND EXISTS (SELECT 1 FROM holdings WHERE user_id = users.id)
    AND NOT EXISTS (SELECT 1 FROM closed_portfolios WHERE user_id = users.id AND date >= ?2)
ORDER BY id LIMIT ?3
