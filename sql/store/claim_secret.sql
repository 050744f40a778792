-- Only while the recorded one is still that which was judged.
UPDATE identity SET secret_check = ?2 WHERE id = 1 AND coalesce(secret_check, '') = ?1
