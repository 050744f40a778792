DELETE FROM points WHERE user_id = ?1
