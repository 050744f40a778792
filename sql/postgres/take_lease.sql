-- The epoch is above the last one, and above the highest that the node that takes it knows of: the
-- database may have gone back. One that is far above was given by no row.
UPDATE leases SET holder = ?1,
    epoch = CASE WHEN ?3 BETWEEN epoch AND epoch + 1000000 THEN ?3 ELSE epoch END + 1,
    until = clock_timestamp() + ?2 * interval '1 millisecond'
FROM (
    SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
            WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true) AS durable,
        set_config('lock_timeout', '500ms', true) AS waits
) AS brief
WHERE role = 'feed' AND until < clock_timestamp() AND brief.durable IS NOT NULL
    AND brief.waits IS NOT NULL
RETURNING epoch
