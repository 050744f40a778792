SELECT until < clock_timestamp(), epoch FROM leases WHERE role = 'feed'
