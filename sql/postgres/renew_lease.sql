-- Also one that has run out: as long as nobody has taken it, nobody has led in between. The settings
-- hold for this statement alone, which is its own transaction.
UPDATE leases SET until = clock_timestamp() + ?2 * interval '1 millisecond'
FROM (
    SELECT set_config('synchronous_commit', 'off', true) AS durable,
        set_config('lock_timeout', '500ms', true) AS waits
) AS brief
WHERE role = 'feed' AND holder = ?1 AND brief.durable IS NOT NULL AND brief.waits IS NOT NULL
RETURNING epoch
