UPDATE identity SET erasures_cleaned = ?1 WHERE id = 1
