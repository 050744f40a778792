DELETE FROM erased_users WHERE forget_ms <= ?1
