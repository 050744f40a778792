-- What is theirs goes with the row.
DELETE FROM users WHERE id = ?1 RETURNING journal_entries
