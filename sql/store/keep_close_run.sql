INSERT INTO close_runs (date, done_to, finished_ms) VALUES (?1, ?2, ?3)
ON CONFLICT (date) DO UPDATE SET done_to = excluded.done_to, finished_ms = excluded.finished_ms
