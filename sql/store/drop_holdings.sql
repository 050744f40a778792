DELETE FROM holdings WHERE user_id = ?1 AND broker = ?2
