SELECT journal_entries, journal_bytes FROM users WHERE id = ?1
