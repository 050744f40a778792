INSERT INTO users (email, name, password_hash, created_ms) VALUES (?1, ?2, ?3, ?4)
RETURNING id
