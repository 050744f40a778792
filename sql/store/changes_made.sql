SELECT change_count.made, change_count.noticed, changes.mark
FROM change_count LEFT JOIN changes ON changes.number = change_count.made
WHERE change_count.id = 1
