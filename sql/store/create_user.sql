-- The epoch is random, so that no token of another account that once had the id is good for this
-- one: ids are given again where a database has gone back.
INSERT INTO users (email, name, password_hash, created_ms, token_epoch) VALUES (?1, ?2, ?3, ?4, ?5)
RETURNING id
