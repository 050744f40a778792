DELETE FROM positions WHERE user_id = ?1
