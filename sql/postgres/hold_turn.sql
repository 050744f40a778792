-- Whoever takes the turn waits for the end of this transaction.
SELECT 1 FROM turns WHERE user_id = ?1 AND holder = ?2 AND number = ?3 FOR SHARE
