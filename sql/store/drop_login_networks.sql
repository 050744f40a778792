DELETE FROM login_networks WHERE user_id = ?1 AND network NOT IN (
    SELECT network FROM login_networks WHERE user_id = ?1
    ORDER BY seen_ms DESC, network LIMIT ?2
)
