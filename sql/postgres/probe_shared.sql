SELECT last_user.user_id FROM last_user, change_count
WHERE last_user.id = 1 AND change_count.id = 1 FOR UPDATE
