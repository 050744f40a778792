UPDATE outside_changes SET noticed = ?1 WHERE id = 1
