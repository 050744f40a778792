DELETE FROM holdings WHERE user_id = ?1
