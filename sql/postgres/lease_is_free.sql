SELECT until < clock_timestamp() FROM leases WHERE role = 'feed'
