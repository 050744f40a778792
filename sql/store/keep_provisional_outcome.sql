INSERT INTO provisional_outcomes (provisional_id, judged_on, from_close_e4, to_close_e4, hit,
    universe_symbols, universe_moved)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (provisional_id) DO NOTHING
