UPDATE outside_changes SET made = made + 1 WHERE id = 1 RETURNING made
