-- Nothing is written for an account that is gone, or a network that was seen within the day.
INSERT INTO login_networks (user_id, network, seen_ms)
SELECT id, ?2, ?3 FROM users WHERE id = ?1
ON CONFLICT (user_id, network) DO UPDATE SET seen_ms = excluded.seen_ms
WHERE login_networks.seen_ms < excluded.seen_ms - ?4
