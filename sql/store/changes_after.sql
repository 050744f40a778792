-- The first row is the change ?1 itself, where it is still there: its mark proves that it is the
-- one that was read. One row with nulls where there is none.
SELECT change_count.made, change_count.noticed, identity.database_id, changes.number, changes.kind,
    changes.user_id, changes.token_id, changes.value, changes.mark, identity.secret_check
FROM change_count JOIN identity ON identity.id = 1 LEFT JOIN changes ON changes.number >= ?1
WHERE change_count.id = 1
ORDER BY changes.number
LIMIT ?2
