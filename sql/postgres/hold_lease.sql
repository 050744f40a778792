-- Whoever takes the lease waits for the end of this transaction.
SELECT 1 FROM leases WHERE role = 'feed' AND epoch = ?1 FOR SHARE
