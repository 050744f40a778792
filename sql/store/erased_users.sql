SELECT id, forget_ms FROM erased_users WHERE forget_ms > ?1
