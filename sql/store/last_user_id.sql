SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'users'
