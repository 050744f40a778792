-- Nobody is its holder then, so that a renewal that comes late finds nothing to renew.
UPDATE leases SET holder = '', until = '-infinity' WHERE role = 'feed' AND holder = ?1
