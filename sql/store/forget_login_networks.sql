DELETE FROM login_networks WHERE seen_ms < ?1
