-- What an entry grows by that is replaced. One that shrinks is taken from a journal over its bound.
UPDATE users SET journal_bytes = journal_bytes + ?2
WHERE id = ?1 AND (?2 <= 0 OR journal_bytes + ?2 <= ?3)
