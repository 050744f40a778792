DELETE FROM closes WHERE date < ?1
