UPDATE users SET portfolio_version = portfolio_version + 1 WHERE id = ?1
