SELECT database_id, starts FROM identity WHERE id = 1
