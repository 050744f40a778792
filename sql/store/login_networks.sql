SELECT login_networks.user_id, users.email, login_networks.network, login_networks.seen_ms
FROM login_networks JOIN users ON users.id = login_networks.user_id
WHERE login_networks.seen_ms >= ?1
ORDER BY login_networks.seen_ms DESC LIMIT ?2
