UPDATE users SET journal_entries = journal_entries + 1 WHERE id = ?1 AND journal_entries < ?2
