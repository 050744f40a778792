-- Also one that has run out: as long as nobody has taken it, nobody has written in between.
UPDATE turns SET until = clock_timestamp() + ?4 * interval '1 millisecond'
WHERE user_id = ?1 AND holder = ?2 AND number = ?3
