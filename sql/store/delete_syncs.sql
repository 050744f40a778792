DELETE FROM syncs WHERE user_id = ?1
