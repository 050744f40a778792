-- Whoever takes the lease waits for the end of this transaction. A node that is stopped within it
-- keeps the lease from the others for no longer than this.
SELECT set_config('idle_in_transaction_session_timeout', '2s', true)
FROM leases WHERE role = 'feed' AND epoch = ?1 FOR SHARE
