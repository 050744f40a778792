SELECT portfolio_version FROM users WHERE id = ?1
