-- Who waits looks at the row and does not lock it.
INSERT INTO turns (user_id, holder, number, until)
SELECT id, ?2, 1, clock_timestamp() + ?3 * interval '1 millisecond' FROM users
WHERE id = ?1 AND NOT EXISTS (
    SELECT 1 FROM turns WHERE user_id = ?1 AND until >= clock_timestamp()
)
ON CONFLICT (user_id) DO UPDATE SET holder = excluded.holder, number = turns.number + 1,
    until = clock_timestamp() + ?3 * interval '1 millisecond'
WHERE turns.until < clock_timestamp()
RETURNING number
