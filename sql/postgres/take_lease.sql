UPDATE leases SET holder = ?1, epoch = epoch + 1,
    until = clock_timestamp() + ?2 * interval '1 millisecond'
WHERE role = 'feed' AND until < clock_timestamp()
RETURNING epoch
