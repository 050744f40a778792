-- Whoever raises it waits for the end of this transaction.
SELECT epoch FROM leadership WHERE role = 'feed' AND epoch = ?1 FOR SHARE
