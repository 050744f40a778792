-- Also one that has run out: as long as nobody has taken it, nobody has led in between.
UPDATE leases SET until = clock_timestamp() + ?2 * interval '1 millisecond'
WHERE role = 'feed' AND holder = ?1
RETURNING epoch
