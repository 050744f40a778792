UPDATE users SET journal_entries = journal_entries + 1, journal_bytes = journal_bytes + ?3
WHERE id = ?1 AND journal_entries < ?2 AND journal_bytes + ?3 <= ?4
