SELECT octet_length(symbol) + coalesce(octet_length(strategy), 0)
    + coalesce(octet_length(notes), 0) + octet_length(tags)
FROM journal WHERE id = ?2 AND user_id = ?1
