SELECT id FROM users
