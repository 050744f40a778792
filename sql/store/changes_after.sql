-- One row with nulls where nothing came after.
SELECT change_count.made, change_count.noticed, changes.number, changes.kind, changes.user_id,
    changes.token_id, changes.value
FROM change_count LEFT JOIN changes ON changes.number > ?1
WHERE change_count.id = 1
ORDER BY changes.number
LIMIT ?2
