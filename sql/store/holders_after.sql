SELECT id FROM users
WHERE id > ?1 AND EXISTS (SELECT 1 FROM holdings WHERE user_id = users.id)
ORDER BY id LIMIT ?2
