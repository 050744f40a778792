UPDATE identity SET database_id = NULL WHERE id = 1
