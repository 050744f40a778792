SELECT user_id FROM last_user WHERE id = 1
