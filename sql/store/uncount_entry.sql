UPDATE users SET journal_entries = journal_entries - 1, journal_bytes = journal_bytes - ?2
WHERE id = ?1
