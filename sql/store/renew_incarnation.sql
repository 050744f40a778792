-- Only while it is still the one that was seen, so that of several who see the same one renews it.
UPDATE identity SET database_id = ?2 WHERE id = 1 AND database_id = ?1
